package trace

import "github.com/cespare/xxhash/v2"

// Window keeps the rows that arrive in [start, end) milliseconds and shifts start
// to 0. A row without a timestamp is kept if the previous turn of its session
// was, or without a session, if the previous row was. It holds one bit a session.
func Window(reqs Requests, start, end float64) Requests {
	return transform(reqs, func() func(*Request) bool {
		kept, last := map[string]bool{}, false
		return func(r *Request) bool {
			switch {
			case r.Timestamp.Set:
				last = r.Timestamp.Value >= start && r.Timestamp.Value < end
				r.Timestamp.Value -= start
			case r.SessionID != "":
				last = kept[r.SessionID]
			}
			if r.SessionID != "" {
				kept[r.SessionID] = last
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
// fraction. The choice depends only on the seed and the session's id (or the row's
// number).
func Sample(reqs Requests, fraction float64, seed uint64) Requests {
	return keepUnits(reqs, func(session string, row int) bool { return Draw(seed, "", session, row) < fraction })
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

// Shard keeps part i of n, 0 <= i < n: sessions by a hash of their id, rows
// without a session in turn. Every row is in exactly one of the n shards. Shards
// keep the trace's clock: if they are taken after all other transforms, machines
// that replay one each follow one schedule.
func Shard(reqs Requests, i, n int) Requests {
	return keepUnits(reqs, func(session string, row int) bool {
		if session != "" {
			return xxhash.Sum64String(session)%uint64(n) == uint64(i)
		}
		return row%n == i
	})
}

// keepUnits keeps the sessions and the rows without a session that keep selects.
func keepUnits(reqs Requests, keep func(session string, row int) bool) Requests {
	return transform(reqs, func() func(*Request) bool {
		row := -1
		return func(r *Request) bool {
			row++
			return keep(r.SessionID, row)
		}
	})
}
