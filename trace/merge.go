package trace

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"moontide/trace/block"
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

// OverlapError reports a block, session or request id that two inputs of a merge share.
type OverlapError struct {
	ID            string // "block id 17", "session id s0" or "request id r0"
	Input, Before int    // numbers of the inputs, from 0; Before had the id first
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("%s is used by inputs %d and %d", e.ID, e.Before+1, e.Input+1)
}

// Disjoint returns the inputs of a merge, which end with an [OverlapError] at the
// first block, session or request id that another input had before. It holds 8 to 50
// bytes for each distinct block, and the other ids.
func Disjoint(inputs ...Requests) []Requests {
	var table block.Table
	var owners []int32 // of blocks, by number in the table
	type name struct{ kind, id string }
	named := map[name]int{} // inputs that had a name first
	var checked []Requests
	for i, in := range inputs {
		claim := func(kind, id string) error {
			before, used := named[name{kind, id}]
			if used && before != i {
				return &OverlapError{fmt.Sprintf("%s id %.60q", kind, id), i, before}
			}
			named[name{kind, id}] = i
			return nil
		}
		checked = append(checked, Checked(in, func(r Request) (err error) {
			if r.SessionID != "" {
				err = claim("session", r.SessionID)
			}
			for id := range r.requestIDs {
				err = cmp.Or(err, claim("request", *id))
			}
			for _, id := range r.HashIDs {
				n, isNew := table.Number(id)
				switch {
				case err != nil:
				case n == block.MaxLen:
					return table.Err()
				case isNew:
					owners = append(owners, int32(i))
				case owners[n] != int32(i):
					return &OverlapError{fmt.Sprintf("block id %d", id), i, int(owners[n])}
				}
			}
			return err
		}))
	}
	return checked
}

// requestIDs yields pointers to the ids of requests in a row.
func (r *Request) requestIDs(yield func(*string) bool) {
	if r.ID != "" && !yield(&r.ID) {
		return
	}
	for i := range r.After {
		if !yield(&r.After[i]) {
			return
		}
	}
}

// Separate returns the inputs of a merge with distinct block ids, and with distinct
// session and request ids: one that another input has gets a suffix. [Renumber] makes
// the block ids small.
func Separate(inputs ...Requests) []Requests {
	sessions, requests := map[string]bool{}, map[string]bool{}
	var separate []Requests
	for i, in := range inputs {
		session, request := renaming(sessions, i), renaming(requests, i)
		rename := func(r *Request) {
			session(&r.SessionID)
			r.After = slices.Clone(r.After)
			for name := range r.requestIDs {
				request(name)
			}
		}
		separate = append(separate, change(numbered(in, &block.Table{}, uint64(i)<<32), rename))
	}
	return separate
}

// renaming returns a function that changes the names of an input that others have
// taken. "" stays.
func renaming(taken map[string]bool, input int) func(*string) {
	names := map[string]string{} // new ones
	return func(old *string) {
		name, known := names[*old]
		if *old == "" || known {
			*old = name
			return
		}
		for name = *old; taken[name]; {
			name = fmt.Sprintf("%s#%d", name, input+1)
		}
		names[*old], taken[name] = name, true
		*old = name
	}
}

// Renumber replaces the block ids by 0, 1, 2, ... in order of first use, as in
// published traces: hashes are four times as long, and programs that read JSON
// numbers as float64 confuse ids above 2^53. It holds 4 to 50 bytes for each
// distinct block.
func Renumber(reqs Requests) Requests {
	return func(yield func(Request, error) bool) { numbered(reqs, &block.Table{}, 0)(yield) }
}

// numbered replaces block ids by their numbers in the table, from first on.
func numbered(reqs Requests, table *block.Table, first uint64) Requests {
	return func(yield func(Request, error) bool) {
		var numbers []uint32
		for r, err := range reqs {
			if err == nil {
				numbers = table.AppendNumbers(numbers[:0], r.HashIDs)
				err = table.Err()
			}
			if err != nil {
				yield(Request{}, err)
				return
			}
			if r.HashIDs != nil {
				ids := make([]uint64, len(numbers))
				for i, n := range numbers {
					ids[i] = first + uint64(n)
				}
				r.HashIDs = ids
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}
