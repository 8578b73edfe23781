package trace

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// window keeps the rows that arrive in [start, end) milliseconds and shifts start
// to 0. A row without a timestamp is kept if one that it waits for was; if it waits for
// none before it, if the previous row was. It holds 12 bytes for each session and id, and
// a bit for each row.
func window(reqs Requests, start, end float64) Requests {
	return transform(reqs, func() func(*Request) bool {
		var earlier Earlier
		var kept rowSet
		last := false
		return func(r *Request) bool {
			row := earlier.rows
			before := earlier.Add(*r)
			switch {
			case r.Timestamp.Set:
				last = r.Timestamp.Value >= start && r.Timestamp.Value < end
				r.Timestamp.Value -= start
			case len(before) > 0:
				last = slices.ContainsFunc(before, kept.has)
			case r.SessionID != "" && r.After == nil: // its session has not begun
				last = false
			}
			if last {
				kept.add(row)
			}
			return last
		}
	})
}

// Take keeps the first n rows.
func Take(reqs Requests, n int) Requests {
	return func(yield func(Request, error) bool) {
		left := n
		for r, err := range reqs {
			if left--; left < 0 || !yield(r, err) || left == 0 {
				return
			}
		}
	}
}

// Sample keeps each session, and each row without a session, with probability
// fraction. The choice depends only on the seed and the name of the session (or the
// row's number). of groups the rows into sessions; nil groups them by SessionID.
func Sample(reqs Requests, of *Sessions, fraction float64, seed uint64) Requests {
	return keepSessions(reqs, of, func(session string, row int) bool { return Draw(seed, "", session, row) < fraction })
}

// Draw returns a number in [0, 1) for a session or, if session is "", for a row. It
// depends only on its arguments. Numbers for different aspects are independent.
func Draw(seed uint64, aspect, session string, row int) float64 {
	h := xxhash.NewWithSeed(seed)
	h.WriteString(aspect)
	if session != "" {
		h.WriteString(session)
	} else {
		var number [9]byte // 9 bytes, so that it differs from ids of 8
		binary.LittleEndian.PutUint64(number[:], uint64(row))
		h.Write(number[:])
	}
	return float64(h.Sum64()>>11) / (1 << 53)
}

// Part keeps part i of n, 0 <= i < n: sessions by a hash of their name, rows
// without a session in turn. Every row is in exactly one of the n parts. Parts
// keep the trace's clock: if they are taken after all other transforms, machines
// that replay one each follow one schedule. of is as for [Sample].
func Part(reqs Requests, of *Sessions, i, n int) Requests {
	return keepSessions(reqs, of, func(session string, row int) bool {
		if session != "" {
			return xxhash.Sum64String(session)%uint64(n) == uint64(i)
		}
		return row%n == i
	})
}

// keepSessions keeps the sessions and the rows without a session that keep selects.
func keepSessions(reqs Requests, of *Sessions, keep func(session string, row int) bool) Requests {
	return transform(reqs, func() func(*Request) bool {
		row := -1
		return func(r *Request) bool {
			row++
			return keep(of.Name(*r), row)
		}
	})
}

// Prune applies cut, which drops rows, and removes their ids from After of the rows
// that are kept. It counts these ids in removed. cut must neither hold nor reorder
// rows. Prune holds a few bytes for each id, and the rows from one on that waits for a
// later row up to that row.
func Prune(reqs Requests, cut func(Requests) Requests, removed *int) Requests {
	return func(yield func(Request, error) bool) {
		kept := map[string]bool{} // rows with these ids so far
		unread := func(id string) bool { _, read := kept[id]; return !read }
		dropped := func(id string) bool { return !kept[id] }
		var held []Request
		// flush yields the rows up to the first that waits for a row not read yet; at the
		// end, all of them.
		flush := func(end bool) bool {
			for len(held) > 0 && (end || !slices.ContainsFunc(held[0].After, unread)) {
				r := held[0]
				held[0], held = Request{}, held[1:]
				if slices.ContainsFunc(r.After, dropped) {
					after := slices.DeleteFunc(slices.Clone(r.After), dropped)
					*removed += len(r.After) - len(after)
					r.After = after
				}
				if !yield(r, nil) {
					return false
				}
			}
			return true
		}
		note := func(r Request) {
			if r.ID != "" {
				kept[r.ID] = false
			}
		}
		for r, err := range cut(Tap(reqs, note)) {
			if err != nil {
				if flush(true) {
					yield(Request{}, err)
				}
				return
			}
			if r.ID != "" {
				kept[r.ID] = true
			}
			if held = append(held, r); !flush(false) {
				return
			}
		}
		flush(true)
	}
}
