package run

import (
	"cmp"
	"slices"
	"time"
	"unique"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Sessions describes the sessions of a run: requests that have the same session id or
// wait for each other, so an agent and its sub-agents are one session. Requests without
// session_id, request_id and after are not covered.
type Sessions struct {
	Requests int // of sessions, inside the window or not
	// Ended is the number of sessions whose last request was done inside the window.
	// Each is counted once: as Failed if a request failed, else as Abandoned if one was
	// abandoned, else as Unfinished if the end of the run canceled a request or came
	// before the last turn, else as Completed. Outgrown sessions of the whole run, which
	// ended because the next prompt did not fit the model's context, are not Completed.
	// With a window, Completed includes outgrown sessions and unfinished ones without a
	// canceled request: of these, only the totals of the run are known.
	Ended, Completed, Failed, Abandoned, Unfinished, Outgrown int
	CutTurns                                                  int                // from Options
	PerHour                                                   trace.Opt[float64] // completed
	// Duration is the time from the first request sent to the last one done, in
	// seconds, and Turns the number of requests: of the sessions entirely inside the
	// window of which no request failed or was abandoned.
	Duration, Turns stats.Sample
	// ByTurn, EachTurn and ByISL group the completed requests. EachTurn has single
	// turns up to MaxEachTurn, and all others in its last group.
	ByTurn, EachTurn, ByISL []TurnGroup

	turns []rowTurn // by row
}

// rowTurn is the turn of a row.
type rowTurn struct {
	row  int
	turn int32
}

// TurnOf returns the turn of a row in its session, from 1, absent if the row is of
// none. It may be called on nil.
func (s *Sessions) TurnOf(row int) trace.Opt[int] {
	if s == nil {
		return trace.Opt[int]{}
	}
	i, found := slices.BinarySearchFunc(s.turns, row, func(t rowTurn, row int) int { return cmp.Compare(t.row, row) })
	if !found {
		return trace.Opt[int]{}
	}
	return trace.Some(int(s.turns[i].turn))
}

// sessionLinks holds what a request waits for, if that is not the turn before, and
// which prompt and answer it contains.
type sessionLinks struct {
	id    string
	after []string
	base  replay.Base
}

func inSession(rec *replay.Record) bool {
	return rec.SessionID != "" || rec.ID != "" || rec.After != nil
}

// addRequest keeps a record for the figures of sessions and, with Options.Detail, of
// requests. It takes about 150 bytes, and the ids.
func (c *collector) addRequest(rec *replay.Record, timing Timing, counted bool) {
	q := newRequest(rec, timing, counted)
	if rec.Sent.Set {
		q.prompt = int32(len(c.prompts.prompts) - 1)
	}
	if q.inSession = inSession(rec); q.inSession {
		c.sessionRequests++
	}
	if rec.Base.Row.Set {
		c.live = true
	}
	if rec.ID != "" || rec.After != nil || rec.Base.Row.Set {
		c.links = append(c.links, sessionLinks{rec.ID, rec.After, rec.Base})
		q.links = int32(len(c.links))
	}
	c.requests = append(c.requests, q)
}

// sortRequests sorts the requests by row and finds their sessions and turns.
func (c *collector) sortRequests() {
	slices.SortFunc(c.requests, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.End, b.End))
	})
	if c.sessionRequests > 0 {
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

// setTurns numbers the turns: a request is one turn after the latest of those with
// its session id that it waits for, directly or through requests of others.
func (c *collector) setTurns() {
	for i := range c.requests {
		c.requests[i].Turn = 0
	}
	const stepsPerRequest = 64
	steps := stepsPerRequest * len(c.requests)
	var stack, others []int32
	for i := range c.requests {
		stack = append(stack[:0], int32(i))
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			if before, some := c.withoutTurn(top); some {
				stack = append(stack, before)
				continue
			}
			stack = stack[:len(stack)-1]
			c.requests[top].Turn = c.latestTurn(top, &others, &steps) + 1
		}
	}
}

// withoutTurn returns a request without a turn yet that another waits for.
func (c *collector) withoutTurn(request int32) (before int32, some bool) {
	all := c.graph.Before(int(request))
	i := slices.IndexFunc(all, func(i int32) bool { return c.requests[i].Turn == 0 })
	if i < 0 {
		return 0, false
	}
	return all[i], true
}

// latestTurn returns the latest turn with the session id of a request that it waits
// for, or 0. It takes a limited number of steps through requests with other ids, and
// misses turns beyond them.
func (c *collector) latestTurn(request int32, others *[]int32, steps *int) (latest int32) {
	session, seen := c.requests[request].session, map[int32]bool(nil)
	*others = append((*others)[:0], request)
	for len(*others) > 0 {
		at := (*others)[len(*others)-1]
		*others = (*others)[:len(*others)-1]
		for _, before := range c.graph.Before(int(at)) {
			if p := &c.requests[before]; p.session == session {
				latest = max(latest, p.Turn)
				continue
			}
			if *steps--; *steps < 0 || seen[before] {
				continue
			}
			if seen == nil {
				seen = map[int32]bool{}
			}
			seen[before] = true
			*others = append(*others, before)
		}
	}
	return latest
}

// session is the state of one session while the requests are visited.
type session struct {
	from, to                    time.Duration
	requests                    int
	failed, abandoned, canceled bool
	sent                        bool
}

func (s *session) add(q *Request) {
	if q.WasSent {
		if !s.sent || q.Sent < s.from {
			s.from = q.Sent
		}
		s.sent = true
		s.requests++
	}
	s.to = max(s.to, q.End)
	switch {
	case q.Class == replay.Canceled:
		s.canceled = true
	case q.Class.Failed():
		s.failed = true
	case q.Class == replay.Abandoned:
		s.abandoned = true
	}
}

// newSessions returns nil without sessions.
func (c *collector) newSessions() *Sessions {
	if c.sessionRequests == 0 {
		return nil
	}
	window := c.opts.Window
	s := &Sessions{Requests: c.sessionRequests, CutTurns: c.opts.CutTurns, Outgrown: c.opts.Outgrown}
	var durations, turns []float64
	for one := range c.eachSession() {
		if !window.Has(one.to) {
			continue
		}
		s.Ended++
		switch {
		case one.failed:
			s.Failed++
			continue
		case one.abandoned:
			s.Abandoned++
			continue
		case one.canceled:
			s.Unfinished++
			continue
		}
		if window.Has(one.from) && one.sent {
			durations = append(durations, (one.to - one.from).Seconds())
			turns = append(turns, float64(one.requests))
		}
	}
	s.Completed = s.Ended - s.Failed - s.Abandoned - s.Unfinished
	if window.whole() {
		s.Unfinished += c.opts.Unfinished
		s.Completed = max(s.Completed-s.Outgrown-c.opts.Unfinished, 0)
	}
	s.Duration, s.Turns = stats.Of(durations), stats.Of(turns)
	if hours := c.result.Duration.Hours(); hours > 0 {
		s.PerHour = trace.Some(float64(s.Completed) / hours)
	}
	c.groupTurns(s)
	return s
}

func (c *collector) eachSession() func(yield func(*session) bool) {
	return func(yield func(*session) bool) {
		all := make([]session, 0, 16)
		index := map[int]int{} // by the first request
		for i := range c.requests {
			if !c.requests[i].inSession {
				continue
			}
			first := c.graph.First(i)
			at, known := index[first]
			if !known {
				at = len(all)
				index[first], all = at, append(all, session{})
			}
			all[at].add(&c.requests[i])
		}
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}
}

var noSession = unique.Make("")
