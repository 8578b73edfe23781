package trace

// Sessions tells which rows are of one session, as [Graph.First] does, but by their
// ids: it holds in whatever order they come, and after rows were cut. It has to be
// told of all rows first. It takes about 100 bytes for each SessionID and each ID of
// a trace. The nil Sessions knows only that rows of one SessionID are of one session.
type Sessions struct {
	sessions, ids map[string]int32 // nodes
	names         []string
	nodes         []node
}

// node is a session or an id: part of a tree of those that are connected.
type node struct {
	above int32 // itself for the first of all, which gives the name
	joins bool  // it has several rows, or nodes
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

// Name returns the name of the session of a row, which all its rows have in common: one
// of its ids; "" if the row is a session of its own.
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
