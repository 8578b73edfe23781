package trace

import "github.com/cespare/xxhash/v2"

// Window keeps the rows that arrive in [start, end) milliseconds and shifts start
// to 0. A row without a timestamp is kept if one that it waits for was; if it waits for
// none before it, if the previous row was. It holds a few bytes for each session and
// each id.
func Window(reqs Requests, start, end float64) Requests {
	return transform(reqs, func() func(*Request) bool {
		sessions, ids := map[string]bool{}, map[string]bool{}
		last := false
		follows := func(r *Request) (kept bool) {
			if r.SessionID != "" && r.After == nil {
				return sessions[r.SessionID]
			}
			kept = last
			for _, id := range r.After {
				before, known := ids[id]
				if before {
					return true
				}
				kept = kept && !known
			}
			return kept
		}
		return func(r *Request) bool {
			if r.Timestamp.Set {
				last = r.Timestamp.Value >= start && r.Timestamp.Value < end
				r.Timestamp.Value -= start
			} else {
				last = follows(r)
			}
			if r.SessionID != "" {
				sessions[r.SessionID] = last
			}
			if r.ID != "" {
				ids[r.ID] = last
			}
			return last
		}
	})
}

// Take keeps the first n rows.
func Take(reqs Requests, n int) Requests {
	return func(yield func(Request, error) bool) {
		if n <= 0 {
			return
		}
		left := n
		for r, err := range reqs {
			left--
			if !yield(r, err) || left == 0 {
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
		for i := range 8 {
			number[i] = byte(row >> (8 * i))
		}
		h.Write(number[:])
	}
	return float64(h.Sum64()>>11) / (1 << 53)
}

// Shard keeps part i of n, 0 <= i < n: sessions by a hash of their name, rows
// without a session in turn. Every row is in exactly one of the n shards. Shards
// keep the trace's clock: if they are taken after all other transforms, machines
// that replay one each follow one schedule. of is as for [Sample].
func Shard(reqs Requests, of *Sessions, i, n int) Requests {
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
