package measure

import (
	"cmp"
	"slices"
	"time"
	"unique"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Sessions describes the sessions of a run: requests that have the same session id or wait
// for each other, such as an agent and its sub-agents. Requests without session_id,
// request_id and after are in no session.
type Sessions struct {
	Requests int // of sessions, inside the window or not
	// Ended is the number of sessions whose last request was done inside the window. Each
	// counts once: as Failed if a request failed, else as Abandoned if one was abandoned,
	// else as Unfinished if the end of the run canceled a request or came before the last
	// turn, else as Completed. Outgrown sessions, which ended because the next prompt did
	// not fit the model's context, are not Completed. With a window, Completed includes
	// outgrown sessions and unfinished ones without a canceled request, because only their
	// totals of the run are known.
	Ended, Completed, Failed, Abandoned, Unfinished, Outgrown int
	CutTurns                                                  int                // from Options
	PerHour                                                   trace.Opt[float64] // completed
	// Duration is the time from the first request sent to the last one done, in seconds, and
	// Turns the number of requests. They cover sessions entirely inside the window without
	// failed or abandoned requests.
	Duration, Turns stats.Sample
	// ByTurn, EachTurn and ByISL group the completed requests. EachTurn has single
	// turns up to MaxEachTurn, and all others in its last group.
	ByTurn, EachTurn, ByISL []Group
}

// sessionLinks are the requests that a request waits for, if not the turn before, and the
// prompt and answer that it contains.
type sessionLinks struct {
	id    string
	after []string
	base  replay.Base
}

// addLinks keeps what a request waits for and continues.
func (c *collector) addLinks(rec *replay.Record, q *Request) {
	if q.inSession {
		c.inSessions++
	}
	c.live = c.live || q.hasBase
	if rec.ID != "" || rec.After != nil || q.hasBase {
		c.links = append(c.links, sessionLinks{rec.ID, rec.After, rec.Base})
		q.links = int32(len(c.links))
	}
}

// sortRequests sorts the requests by row and finds their sessions and turns.
func (c *collector) sortRequests() {
	slices.SortFunc(c.requests, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.Done, b.Done))
	})
	if c.inSessions > 0 {
		c.graph = c.sessionGraph(true)
		c.setTurns()
	}
}

// sessionGraph returns the graph of the requests, by their index. If records
// contradict each other, it is that of the session ids alone.
func (c *collector) sessionGraph(linked bool) *trace.Graph {
	var b trace.GraphBuilder
	defer b.Close()
	for i := range c.requests {
		q := &c.requests[i]
		r := trace.Request{SessionID: q.session.Value()}
		if linked && q.links > 0 {
			l := &c.links[q.links-1]
			r.ID, r.After = l.id, l.after
		}
		b.Add(r, 0)
	}
	graph, err := b.Graph()
	if err != nil {
		return c.sessionGraph(false)
	}
	return graph
}

// setTurns numbers the requests with the same session id by row. Agents without an id have
// their own turns in each session of the graph.
func (c *collector) setTurns() {
	type key struct {
		id    unique.Handle[string]
		first int
	}
	turns := map[key]int32{}
	for i := range c.requests {
		k := key{c.requests[i].session, c.graph.First(i)}
		turns[k]++
		c.requests[i].Turn = turns[k]
	}
}

// session is the state of one session while the requests are visited.
type session struct {
	from, to time.Duration
	requests int // sent
	outcome  sessionOutcome
}

// sessionOutcome is the worst outcome of the requests of a session.
type sessionOutcome int

const (
	sessionCompleted sessionOutcome = iota
	sessionCanceled
	sessionAbandoned
	sessionFailed
	sessionOutcomes
)

func (s *session) add(q *Request) {
	if q.WasSent {
		if s.requests == 0 || q.Sent < s.from {
			s.from = q.Sent
		}
		s.requests++
	}
	s.to = max(s.to, q.Done)
	switch {
	case q.Class == replay.Canceled:
		s.outcome = max(s.outcome, sessionCanceled)
	case q.Class == replay.Abandoned:
		s.outcome = max(s.outcome, sessionAbandoned)
	case q.Class.Failed():
		s.outcome = sessionFailed
	}
}

// newSessions returns nil without sessions.
func (c *collector) newSessions(duration time.Duration) *Sessions {
	if c.inSessions == 0 {
		return nil
	}
	window, sessions := c.opts.Window, map[int]*session{} // by the first request
	for i := range c.requests {
		if q := &c.requests[i]; q.inSession {
			first := c.graph.First(i)
			if sessions[first] == nil {
				sessions[first] = &session{}
			}
			sessions[first].add(q)
		}
	}
	s := &Sessions{Requests: c.inSessions, CutTurns: c.opts.CutTurns, Outgrown: c.opts.Outgrown}
	var ended [sessionOutcomes]int
	var durations, turns []float64
	for _, one := range sessions {
		if !window.Has(one.to) {
			continue
		}
		s.Ended++
		ended[one.outcome]++
		if one.outcome == sessionCompleted && window.Has(one.from) && one.requests > 0 {
			durations = append(durations, (one.to - one.from).Seconds())
			turns = append(turns, float64(one.requests))
		}
	}
	s.Completed, s.Unfinished, s.Abandoned, s.Failed = ended[sessionCompleted], ended[sessionCanceled], ended[sessionAbandoned], ended[sessionFailed]
	if window.whole() {
		s.Unfinished += c.opts.Unfinished
		s.Completed = max(s.Completed-s.Outgrown-c.opts.Unfinished, 0)
	}
	s.Duration, s.Turns = stats.Of(durations), stats.Of(turns)
	if hours := duration.Hours(); hours > 0 {
		s.PerHour = trace.Some(float64(s.Completed) / hours)
	}
	s.ByTurn, s.EachTurn, s.ByISL = c.byTurn(), c.byEachTurn(), c.byISL(true)
	return s
}
