package replay

import (
	"maps"
	"time"

	"moontide/trace"
)

// SessionLimits limits sessions: rows of one SessionID and all that wait for each
// other. The zero value sets no limit.
type SessionLimits struct {
	// Open is the number of sessions in progress at a time. Others wait, in the order
	// of their arrivals, until one has ended; the wait is client queue time. A row
	// without a session is a session of its own.
	Open int
	// Turns is the number of rows of one SessionID that are sent.
	Turns int
}

// sessionGate applies SessionLimits. It is pure: see schedule. A nil sessionGate sets no
// limit.
type sessionGate struct {
	SessionLimits
	graph    *trace.Graph
	sessions map[int]*session // in progress or in the queue, by first row
	turns    map[string]int   // rows of each SessionID so far, if they are limited
	open     int
	queue    []*session // not open yet
}

// session is the state of a session.
type session struct {
	left int // rows that have not ended
	open bool
	held []job // rows to be sent once it is open
}

func newSessionGate(c scheduleConfig) *sessionGate {
	if c.sessions == (SessionLimits{}) {
		return nil
	}
	g := &sessionGate{SessionLimits: c.sessions, graph: c.graph, sessions: map[int]*session{}, turns: map[string]int{}}
	if c.resume != nil {
		g.turns = c.resume.turns
		for first, began := range c.resume.began {
			g.sessions[first] = &session{left: c.graph.Size(first) - began.rows, open: true}
			g.open++
		}
	}
	return g
}

func (g *sessionGate) of(row int) *session {
	first := g.graph.First(row)
	s := g.sessions[first]
	if s == nil {
		s = &session{left: g.graph.Size(first)}
		g.sessions[first] = s
	}
	return s
}

// admit reports whether a row that waits for no other may be sent. If not, it is held
// until ended returns it.
func (g *sessionGate) admit(j job) bool {
	if g == nil {
		return true
	}
	s := g.of(j.row)
	if !s.open && (g.Open == 0 || g.open < g.Open) {
		s.open = true
		g.open++
	}
	if s.open {
		return true
	}
	if s.held == nil {
		g.queue = append(g.queue, s)
	}
	s.held = append(s.held, j)
	return false
}

// overTurns reports whether the next row of a session exceeds its turns.
func (g *sessionGate) overTurns(j *job) bool {
	if g == nil || g.Turns == 0 || j.req.SessionID == "" {
		return false
	}
	g.turns[j.req.SessionID]++
	return g.turns[j.req.SessionID] > g.Turns
}

// begunSessions counts sessions that have begun and are not over. Those with a request
// that failed or was abandoned, or with a row that was not sent, are not counted. It
// is pure: see schedule.
type begunSessions struct {
	graph *trace.Graph
	begun map[int]sessionBegan // by first row
}

func newBegunSessions(c scheduleConfig) begunSessions {
	b := begunSessions{c.graph, map[int]sessionBegan{}}
	if c.resume != nil {
		maps.Copy(b.begun, c.resume.began)
	}
	return b
}

// ended notes the end of a row.
func (b *begunSessions) ended(row int, f fate) {
	first := b.graph.First(row)
	size := b.graph.Size(first)
	if size == 1 {
		return
	}
	s := b.begun[first]
	s.rows++
	s.broken = s.broken || f != completed
	if b.begun[first] = s; s.rows == size {
		delete(b.begun, first)
	}
}

func (b *begunSessions) count() (n int) {
	for _, s := range b.begun {
		if !s.broken {
			n++
		}
	}
	return n
}

// ended notes the end of a row. If it was the last of its session, the next session is
// opened. It returns the held rows that may be sent now.
func (g *sessionGate) ended(row int, at time.Duration) (next []job) {
	if g == nil {
		return nil
	}
	s := g.of(row)
	if s.left--; s.left > 0 {
		return nil
	}
	delete(g.sessions, g.graph.First(row))
	if !s.open {
		return nil
	}
	g.open--
	for len(g.queue) > 0 && g.open < g.Open {
		s, g.queue = g.queue[0], g.queue[1:]
		s.open = true
		g.open++
		for _, j := range s.held {
			j.from = max(j.from, at)
			next = append(next, j)
		}
		s.held = nil
	}
	return next
}
