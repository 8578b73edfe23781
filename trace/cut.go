package trace

import "github.com/cespare/xxhash/v2"

// Window keeps the rows that arrive in [start, end) milliseconds and moves
// them so that start becomes 0. A row without a timestamp stays with the turn
// before it in its session, or, without a session, with the row before it.
// It remembers one bit for each session.
func Window(reqs Requests, start, end float64) Requests {
	return func(yield func(Request, error) bool) {
		kept := map[string]bool{}
		var last bool
		for r, err := range reqs {
			if err == nil {
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
				if !last {
					continue
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
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

// Sample keeps each session, and each row without one, with the given
// probability. Which ones depends on the seed and on the session's name (or
// the row's number) alone.
func Sample(reqs Requests, fraction float64, seed uint64) Requests {
	return keepUnits(reqs, func(session string, row int) bool {
		h := xxhash.NewWithSeed(seed)
		if session != "" {
			h.WriteString(session)
		} else {
			var number [9]byte // one byte more than any name can be mistaken for
			for i := range 8 {
				number[i] = byte(row >> (8 * i))
			}
			h.Write(number[:])
		}
		return float64(h.Sum64()>>11)/(1<<53) < fraction
	})
}

// Shard keeps part i of n, 0 <= i < n: sessions by a hash of their name, rows
// without one in turn. The n shards hold every row exactly once and keep the
// trace's clock, so that machines that replay one each act together.
func Shard(reqs Requests, i, n int) Requests {
	return keepUnits(reqs, func(session string, row int) bool {
		if session != "" {
			return xxhash.Sum64String(session)%uint64(n) == uint64(i)
		}
		return row%n == i
	})
}

func keepUnits(reqs Requests, keep func(session string, row int) bool) Requests {
	return func(yield func(Request, error) bool) {
		row := 0
		for r, err := range reqs {
			if err == nil && !keep(r.SessionID, row) {
				row++
				continue
			}
			row++
			if !yield(r, err) {
				return
			}
		}
	}
}
