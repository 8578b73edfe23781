package trace

// Sessions tells which rows belong to one session, as [Graph.First] does, but by ids
// instead of row numbers, so it can be used after rows were reordered or dropped. All
// rows of the trace must be added first. It takes about 100 bytes for each SessionID
// and each ID. With a nil Sessions, each SessionID is a session.
type Sessions struct {
	sessions, ids map[string]int32 // nodes
	names         []string
	nodes         []node
}

// node is a SessionID or an ID, in a tree of those that are connected.
type node struct {
	above int32 // itself for the root, which gives the name
	joins bool  // of a root: its tree has several nodes, or a row waits for it
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
			n = int32(len(s.nodes))
			in[name] = n
			s.names, s.nodes = append(s.names, name), append(s.nodes, node{above: n})
		}
		if own < 0 {
			own = n
			return
		}
		a, b := s.first(own), s.first(n)
		s.nodes[max(a, b)].above = min(a, b)
		s.nodes[min(a, b)].joins = true
	}
	if r.SessionID != "" {
		join(s.sessions, r.SessionID)
	}
	if r.ID != "" {
		join(s.ids, r.ID)
	}
	for _, id := range r.After {
		join(s.ids, id)
		s.nodes[s.first(own)].joins = true
	}
}

func (s *Sessions) first(n int32) int32 {
	for s.nodes[n].above != n {
		s.nodes[n].above = s.nodes[s.nodes[n].above].above
		n = s.nodes[n].above
	}
	return n
}

// Name returns the name of the session of a row: one of its ids, the same for all of its
// rows; "" if the row is a session of its own.
func (s *Sessions) Name(r Request) string {
	if s == nil || len(s.nodes) == 0 {
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
	if n = s.first(n); r.SessionID == "" && !s.nodes[n].joins {
		return ""
	}
	return s.names[n]
}
