package trace

// Speed makes a trace play x times as fast: arrivals and delays are divided by
// x, which must be above 0. Nothing is rounded beyond the last digit.
func Speed(reqs Requests, x float64) Requests {
	return mapRows(reqs, func(r Request) Request {
		r.Timestamp.Value /= x
		r.Delay.Value /= x
		return r
	})
}

// Rebase moves the trace so that its first arrival is at 0.
func Rebase(reqs Requests) Requests {
	return func(yield func(Request, error) bool) {
		var origin Opt[float64]
		for r, err := range reqs {
			if r.Timestamp.Set {
				if !origin.Set {
					origin = r.Timestamp
				}
				r.Timestamp.Value -= origin.Value
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func mapRows(reqs Requests, f func(Request) Request) Requests {
	return func(yield func(Request, error) bool) {
		for r, err := range reqs {
			if err == nil {
				r = f(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
