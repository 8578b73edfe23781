package trace

import (
	"fmt"
	"iter"
	"slices"
)

// InOrder ends the stream with an error if a row arrives before its predecessor.
func InOrder(reqs Requests) Requests {
	return func(yield func(Request, error) bool) {
		row, last := 0, 0.0
		Checked(reqs, func(r Request) error {
			row++
			switch {
			case !r.Timestamp.Set:
			case r.Timestamp.Value < last:
				return fmt.Errorf("row %d goes back in time, from %s to %s ms: sort the trace first", row, AppendMS(nil, last), AppendMS(nil, r.Timestamp.Value))
			default:
				last = r.Timestamp.Value
			}
			return nil
		})(yield)
	}
}

// Merge merges traces that are each in order of arrival. Simultaneous rows are in
// the order of their inputs. A row without a timestamp stays after its
// predecessor. Equal block and session ids are the same block or session.
func Merge(inputs ...Requests) Requests {
	if len(inputs) == 1 {
		return inputs[0]
	}
	return func(yield func(Request, error) bool) {
		heads := make([]*head, 0, len(inputs))
		for _, in := range inputs {
			h := &head{}
			h.pull, h.stop = iter.Pull2(in)
			defer h.stop()
			if h.next() {
				heads = append(heads, h)
			}
		}
		for len(heads) > 0 {
			first := 0
			for i, h := range heads {
				if h.err != nil {
					yield(Request{}, h.err)
					return
				}
				if h.at < heads[first].at {
					first = i
				}
			}
			if !yield(heads[first].row, nil) {
				return
			}
			if !heads[first].next() {
				heads = slices.Delete(heads, first, first+1)
			}
		}
	}
}

// head is the next row of one input.
type head struct {
	row  Request
	err  error
	at   float64 // arrival, or that of the previous row
	pull func() (Request, error, bool)
	stop func()
}

func (h *head) next() (ok bool) {
	h.row, h.err, ok = h.pull()
	if h.row.Timestamp.Set {
		h.at = h.row.Timestamp.Value
	}
	return ok
}
