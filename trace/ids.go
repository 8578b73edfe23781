package trace

import (
	"fmt"

	"moontide/trace/block"
)

// OverlapError reports a block or session id that two inputs of a merge share.
type OverlapError struct {
	ID            string // "block id 17" or "session id s0"
	Input, Before int    // numbers of the inputs, from 0; Before had the id first
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("%s is used by inputs %d and %d", e.ID, e.Before+1, e.Input+1)
}

// Disjoint returns the inputs of a merge, which end with an [OverlapError] at the
// first block or session id that another input had before. It holds 8 to 50 bytes
// for each distinct block, and the session ids.
func Disjoint(inputs ...Requests) []Requests {
	var table block.Table
	var owners []int32 // of blocks, by number in the table
	sessions := map[string]int{}
	var checked []Requests
	for i, in := range inputs {
		overlap := func(before int, format string, id any) error {
			return &OverlapError{ID: fmt.Sprintf(format, id), Input: i, Before: before}
		}
		checked = append(checked, Checked(in, func(r Request) error {
			if before, used := sessions[r.SessionID]; used && before != i {
				return overlap(before, "session id %.60q", r.SessionID)
			}
			if r.SessionID != "" {
				sessions[r.SessionID] = i
			}
			for _, id := range r.HashIDs {
				n, isNew := table.Number(id)
				switch {
				case n == block.MaxLen:
					return table.Err()
				case isNew:
					owners = append(owners, int32(i))
				case owners[n] != int32(i):
					return overlap(int(owners[n]), "block id %d", id)
				}
			}
			return nil
		}))
	}
	return checked
}

// Separate returns the inputs of a merge with distinct block ids, and with distinct
// session ids: one that another input has gets a suffix. [Renumber] makes the block
// ids small.
func Separate(inputs ...Requests) []Requests {
	taken := map[string]bool{}
	var separate []Requests
	for i, in := range inputs {
		names := map[string]string{} // new session ids
		rename := func(r *Request) {
			name, known := names[r.SessionID]
			if r.SessionID == "" || known {
				r.SessionID = name
				return
			}
			for name = r.SessionID; taken[name]; {
				name = fmt.Sprintf("%s#%d", name, i+1)
			}
			names[r.SessionID], taken[name] = name, true
			r.SessionID = name
		}
		separate = append(separate, change(numbered(in, &block.Table{}, uint64(i)<<32), rename))
	}
	return separate
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
