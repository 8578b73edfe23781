package trace

import "slices"

// Sessions tells which rows belong to one session, as [Graph.First] does, but by ids
// instead of row numbers, so it can be used after rows were reordered or dropped. All
// rows of the trace must be added first. It takes about 100 bytes for each SessionID
// and each ID. With a nil Sessions, each SessionID is a session.
type Sessions struct {
	sessions, ids map[string]int32 // numbers of names
	names         []string
	connected     forest // names of one session
	// joins is set for the first name of a session that has several, or that a row
	// waits for.
	joins []bool
}

// Add adds a row.
func (s *Sessions) Add(r Request) {
	if !inSession(r) {
		return
	}
	if s.sessions == nil {
		s.sessions, s.ids = map[string]int32{}, map[string]int32{}
	}
	own := int32(-1)
	join := func(in map[string]int32, name string) {
		n, known := in[name]
		if !known {
			n = int32(len(s.names))
			in[name] = n
			s.names, s.joins = append(s.names, name), append(s.joins, false)
			s.connected.grow(n + 1)
		}
		if own < 0 {
			own = n
			return
		}
		s.joins[s.connected.join(own, n)] = true
	}
	if r.SessionID != "" {
		join(s.sessions, r.SessionID)
	}
	if r.ID != "" {
		join(s.ids, r.ID)
	}
	for _, id := range r.After {
		join(s.ids, id)
		s.joins[s.connected.first(own)] = true
	}
}

// Name returns the name of the session of a row: one of its ids, the same for all of its
// rows; "" if the row is a session of its own.
func (s *Sessions) Name(r Request) string {
	if s == nil || len(s.names) == 0 {
		return r.SessionID
	}
	n, known := s.sessions[r.SessionID]
	if !known && r.ID != "" {
		n, known = s.ids[r.ID]
	}
	if !known && len(r.After) > 0 {
		n, known = s.ids[r.After[0]]
	}
	if !known {
		return r.SessionID
	}
	if n = s.connected.first(n); r.SessionID == "" && !s.joins[n] {
		return ""
	}
	return s.names[n]
}

// forest holds disjoint sets of numbers as trees: each number points towards the
// smallest one of its set, which points to itself.
type forest []int32

// grow adds numbers below n, each a set of its own.
func (f *forest) grow(n int32) {
	*f = slices.Grow(*f, max(int(n)-len(*f), 0))
	for i := int32(len(*f)); i < n; i++ {
		*f = append(*f, i)
	}
}

// first returns the smallest number of a set.
func (f forest) first(n int32) int32 {
	for f[n] != n {
		f[n] = f[f[n]]
		n = f[n]
	}
	return n
}

// join makes two sets one and returns its smallest number.
func (f forest) join(a, b int32) int32 {
	a, b = f.first(a), f.first(b)
	f[max(a, b)] = min(a, b)
	return min(a, b)
}

// rowSet is a set of rows.
type rowSet []uint64

func (b rowSet) has(row int32) bool {
	i := int(row / 64)
	return i < len(b) && b[i]>>(row%64)&1 == 1
}

func (b *rowSet) add(row int32) {
	if missing := int(row/64) + 1 - len(*b); missing > 0 {
		*b = append(*b, make(rowSet, missing)...)
	}
	(*b)[row/64] |= 1 << (row % 64)
}
