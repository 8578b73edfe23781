package replay

import (
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

// sessions tracks the sessions in progress and applies SessionLimits. It is pure: see
// schedule.
type sessions struct {
	SessionLimits
	graph      *trace.Graph
	inProgress map[int]*session // and queued, by first row
	turns      map[string]int   // rows of each SessionID so far, if they are limited
	open       int
	queue      []*session // not open yet
}

// session is the state of a session.
type session struct {
	ended  int  // rows that were sent or dropped
	broken bool // a request failed or was abandoned, or a row was dropped
	open   bool
	queued []job // rows to be sent once it is open
}

func newSessions(c scheduleConfig) sessions {
	s := sessions{SessionLimits: c.sessions, graph: c.graph, inProgress: map[int]*session{}, turns: map[string]int{}}
	if c.resume != nil {
		s.inProgress, s.turns, s.open = c.resume.sessions, c.resume.turns, len(c.resume.sessions)
		for _, session := range s.inProgress {
			session.open = true
		}
	}
	return s
}

// of returns the session of a row, and the session's first row.
func (s *sessions) of(row int) (*session, int) {
	first := s.graph.First(row)
	if s.inProgress[first] == nil {
		s.inProgress[first] = &session{}
	}
	return s.inProgress[first], first
}

// admit reports whether a row that waits for no other may be sent. If not, it is queued
// until ended returns it.
func (s *sessions) admit(j job) bool {
	if s.Open == 0 {
		return true
	}
	session, _ := s.of(j.row)
	if !session.open && s.open < s.Open {
		session.open = true
		s.open++
	}
	if session.open {
		return true
	}
	if session.queued == nil {
		s.queue = append(s.queue, session)
	}
	session.queued = append(session.queued, j)
	return false
}

// overTurns reports whether the next row of a session exceeds its turns.
func (s *sessions) overTurns(j *job) bool {
	if s.Turns == 0 || j.req.SessionID == "" {
		return false
	}
	s.turns[j.req.SessionID]++
	return s.turns[j.req.SessionID] > s.Turns
}

// ended notes the end of a row. If it was the last of its session, the next session is
// opened. It returns the queued rows that may be sent now.
func (s *sessions) ended(row int, at time.Duration, r result) (next []job) {
	if s.Open == 0 && s.graph.Size(s.graph.First(row)) == 1 {
		return nil
	}
	session, first := s.of(row)
	session.ended++
	session.broken = session.broken || r != completed
	if session.ended < s.graph.Size(first) {
		return nil
	}
	delete(s.inProgress, first)
	if session.open {
		s.open--
	}
	for len(s.queue) > 0 && s.open < s.Open {
		session, s.queue = s.queue[0], s.queue[1:]
		session.open = true
		s.open++
		for _, j := range session.queued {
			j.from = max(j.from, at)
			next = append(next, j)
		}
		session.queued = nil
	}
	return next
}

// unfinished counts the sessions that have begun and are not over, without those that are
// broken.
func (s *sessions) unfinished() (n int) {
	for _, session := range s.inProgress {
		if session.ended > 0 && !session.broken {
			n++
		}
	}
	return n
}
