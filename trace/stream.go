package trace

// Collect returns the rows of a stream up to its end or its error.
func Collect(reqs Requests) ([]Request, error) {
	var rows []Request
	for r, err := range reqs {
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// FromSlice is the stream of the rows in memory.
func FromSlice(rows []Request) Requests {
	return func(yield func(Request, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}
