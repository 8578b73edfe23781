// Package merge makes one trace of several.
//
//	rows := merge.ByArrival(merge.Disjoint(a, b)...)
//
// Equal ids in two inputs are equal blocks, sessions or requests. [Disjoint] refuses inputs
// that share ids, and [Separate] makes them distinct.
package merge

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"moontide/trace"
	"moontide/trace/block"
)

// ByArrival merges traces that are each in order of arrival. Simultaneous rows are in
// the order of their inputs. A row without a timestamp stays after its
// predecessor. Equal block and session ids are the same block or session.
func ByArrival(inputs ...trace.Requests) trace.Requests {
	if len(inputs) == 1 {
		return inputs[0]
	}
	return func(yield func(trace.Request, error) bool) {
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
					yield(trace.Request{}, h.err)
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
	row  trace.Request
	err  error
	at   float64 // arrival, or that of the previous row
	pull func() (trace.Request, error, bool)
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
func Disjoint(inputs ...trace.Requests) []trace.Requests {
	var table block.Table
	var owners []int32 // of blocks, by number in the table
	type name struct{ kind, id string }
	named := map[name]int{} // inputs that had a name first
	var checked []trace.Requests
	for i, in := range inputs {
		claim := func(kind, id string) error {
			before, used := named[name{kind, id}]
			if used && before != i && id != "" {
				return &OverlapError{fmt.Sprintf("%s id %.60q", kind, id), i, before}
			}
			named[name{kind, id}] = i
			return nil
		}
		checked = append(checked, trace.Checked(in, func(r trace.Request) (err error) {
			err = cmp.Or(claim("session", r.SessionID), claim("request", r.ID))
			for _, id := range r.After {
				err = cmp.Or(err, claim("request", id))
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

// Separate returns the inputs of a merge with distinct block ids, and with distinct
// session and request ids: one that another input has gets a suffix. [Renumber] makes
// the block ids small.
func Separate(inputs ...trace.Requests) []trace.Requests {
	sessions, requests := map[string]bool{}, map[string]bool{}
	var separate []trace.Requests
	for i, in := range inputs {
		session, request := renaming(sessions, i), renaming(requests, i)
		rename := func(r *trace.Request) {
			session(&r.SessionID)
			request(&r.ID)
			r.After = slices.Clone(r.After)
			for i := range r.After {
				request(&r.After[i])
			}
		}
		separate = append(separate, numbered(in, uint64(i)<<32, rename))
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
func Renumber(reqs trace.Requests) trace.Requests { return numbered(reqs, 0, func(*trace.Request) {}) }

// numbered replaces block ids by their numbers in order of first use, from first on, and
// changes each row.
func numbered(reqs trace.Requests, first uint64, change func(*trace.Request)) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		var table block.Table
		var numbers []uint32
		for r, err := range reqs {
			if err == nil {
				numbers = table.AppendNumbers(numbers[:0], r.HashIDs)
				err = table.Err()
			}
			if err != nil {
				yield(trace.Request{}, err)
				return
			}
			if r.HashIDs != nil {
				ids := make([]uint64, len(numbers))
				for i, n := range numbers {
					ids[i] = first + uint64(n)
				}
				r.HashIDs = ids
			}
			if change(&r); !yield(r, nil) {
				return
			}
		}
	}
}
