package trace

import (
	"cmp"
	"fmt"
	"slices"
)

// InOrder ends the stream with an error if a row arrives before its predecessor.
func InOrder(reqs Requests) Requests {
	return func(yield func(Request, error) bool) {
		row, last := 0, 0.0
		for r, err := range reqs {
			row++
			if r.Timestamp.Set {
				if r.Timestamp.Value < last {
					yield(Request{}, fmt.Errorf("row %d goes back in time, from %s to %s ms: sort the trace first", row, AppendMS(nil, last), AppendMS(nil, r.Timestamp.Value)))
					return
				}
				last = r.Timestamp.Value
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Sort puts the rows in order of arrival. Simultaneous rows keep their order,
// and a row without a timestamp stays after its predecessor. It holds the whole
// trace in memory.
func Sort(reqs Requests) Requests {
	return func(yield func(Request, error) bool) {
		type timed struct {
			at  float64
			row Request
		}
		var rows []timed
		at := 0.0
		for r, err := range reqs {
			if err != nil {
				yield(Request{}, err)
				return
			}
			if r.Timestamp.Set {
				at = r.Timestamp.Value
			}
			rows = append(rows, timed{at, r})
		}
		slices.SortStableFunc(rows, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
		for _, r := range rows {
			if !yield(r.row, nil) {
				return
			}
		}
	}
}
