package format

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"moontide/trace"
)

// ref names a request: the number of its session, -1 for none, and its number in the session.
type ref struct{ session, number int32 }

// part is what a later request of a session may wait for: an earlier request of the
// session, or a sub-agent that it called.
type part struct {
	begin, end float64 // ms
	endless    bool    // the end was not recorded; end is begin
	agent      bool
	last       []ref // the requests whose end is that of the part
}

// maxParts bounds the parts of a timeline.
const maxParts = 1 << 14

// timeline finds which parts a request of a session waited for, by recorded times:
// all that had ended when it began. It omits those that one of the others waited
// for. Requests are added in order of their begin.
type timeline struct {
	slack    float64 // ms by which a recorded begin may precede an end before it
	parts    []part  // in the order in which they were added
	previous *ref    // the request that was added last
}

// add adds a part.
func (l *timeline) add(p part) error {
	if len(l.parts) == maxParts {
		return fmt.Errorf("more than %d requests and sub-agents of a session run at the same time: keep the recorded times instead", maxParts)
	}
	l.parts = append(l.parts, p)
	return nil
}

// latest returns the index of the request that began last of those that had ended at t, -1
// for none.
func (l *timeline) latest(t float64) int {
	i := len(l.parts) - 1
	for i >= 0 && (l.parts[i].agent || l.parts[i].end > t+l.slack) {
		i--
	}
	return i
}

// caller returns the request that called a sub-agent at t, the latest, if there is one.
func (l *timeline) caller(t float64) []part {
	i := l.latest(t)
	return l.parts[max(i, 0) : i+1]
}

// until returns the parts that a request that began at t waited for, in the order in
// which they were added. It forgets those that the latest request waited for.
func (l *timeline) until(t float64) (ended []part) {
	if i := l.latest(t); i > 0 {
		begin := l.parts[i].begin + l.slack
		others := slices.DeleteFunc(l.parts[:i], func(p part) bool { return p.end <= begin })
		l.parts = append(others, l.parts[i:]...)
	}
	for _, p := range l.parts {
		if p.end <= t+l.slack {
			ended = append(ended, p)
		}
	}
	return ended
}

// agent returns all requests so far as one part: a call of a sub-agent, which has ended.
func (l timeline) agent() part {
	l.parts = slices.Clone(l.parts) // until forgets some
	p := part{end: math.Inf(-1), agent: true}
	for _, q := range l.until(math.Inf(1)) {
		if q.end >= p.end {
			p.end, p.endless = q.end, q.endless
		}
		p.last = append(p.last, q.last...)
	}
	return p
}

// agents is the source of a format with sessions of agents, whose requests have recorded
// times. Its records are rows without times.
type agents struct {
	indexed[call]
	sessions []session        // by number
	numbers  map[string]int32 // of sessions, by name
	waits    int              // entries of after of all requests
	ids      []uint64         // to be reused
	record   []byte           // to be reused
}

// session is that of an agent or a sub-agent.
type session struct {
	timeline
	turns  int32 // requests whose starts are known
	name   string
	parent int32     // number of the session of the caller, or -1
	tools  []float64 // ends of the tools that it used, if the trace has them
	calls  []part    // those that called sub-agents
	prompt prompt    // the latest of a TraceLab session
	named  bool      // its requests need a request_id, as others wait for some

	// Of findCalls:
	calling float64 // the latest end of the calls so far, which are no longer in calls
	latest  *call   // the request before
	called  float64 // calling of its caller at that request
}

// call is a request, and when it starts: at a time, or after other requests.
type call struct {
	ref
	end    float64 // ms, NaN if unknown
	ms     float64 // the arrival, NaN if unknown, or the delay after the last of after ends
	delays bool    // ms is a delay
	again  bool    // it begins another call of a sub-agent
	ends   bool    // it is the last request of its session or call
	kind   trace.DelayKind
	after  *[]ref // nil: it waits for the previous turn of its session, if any
}

// maxWaits bounds the entries of after of all requests.
const maxWaits = 1 << 24

// sessionOf returns the number of the session with a name, -1 for none.
func (a *agents) sessionOf(name string) int32 {
	if name == "" {
		return -1
	}
	number, known := a.numbers[name]
	if !known {
		number = int32(len(a.sessions))
		a.numbers[name] = number
		a.sessions = append(a.sessions, session{name: name, parent: -1, timeline: timeline{slack: 1}})
	}
	return number
}

// addRow adds a request that was recorded at a time in ms, NaN if unknown. Its block ids are
// reused.
func (a *agents) addRow(row *trace.Request, at float64, line int, c call) error {
	a.ids = row.HashIDs
	a.record = trace.AppendStored(a.record[:0], row)
	return a.add(a.record, at, line, c)
}

// next finds the start of the next request of a session, which was recorded at t, if it waits for
// parts, and the kind of a delay after a sub-agent. It returns the part that ended last.
func (a *agents) next(of *timeline, c *call, t float64, parts []part) (last part, err error) {
	after := make([]ref, 0, len(parts))
	first, follows, joins := of.previous == nil, false, false
	for i, p := range parts {
		if i == 0 || p.end >= last.end {
			last = p
		}
		follows = follows || !first && p.last[0] == *of.previous
		joins = joins || p.agent
		after = append(after, p.last...)
	}
	if c.ms = t; len(after) > 0 && !last.endless {
		c.ms, c.delays = roundToMicrosecond(max(0, t-last.end)), true
	}
	switch {
	case first && len(after) > 0:
		a.notes.count("sub-agents that begin after the request that called them")
	case !first && !follows:
		a.notes.count("requests that began before the previous one ended, and do not wait for it")
	}
	if joins {
		c.kind = trace.Tool
		a.notes.count("turns that wait for sub-agents that had ended when they began")
	}
	if first && len(after) > 0 || !first && !(len(after) == 1 && follows) {
		if a.waits += len(after); a.waits > maxWaits {
			return last, fmt.Errorf("the lists in after would have more than %d entries in total", maxWaits)
		}
		for _, r := range after {
			a.sessions[r.session].named = true
		}
		c.after = &after
	}
	p := part{begin: t, end: c.end, last: []ref{c.ref}}
	if math.IsNaN(c.end) {
		p.end, p.endless = t, true
	}
	of.previous = &p.last[0]
	return last, of.add(p)
}

func (a *agents) split(t *Text) units { return t.Line }

// complete finds the starts of all requests, in order of arrival. Time 0 is the first arrival.
func (a *agents) complete() {
	for i := range a.sessions {
		slices.Sort(a.sessions[i].tools)
		slices.SortFunc(a.sessions[i].calls, func(a, b part) int { return cmp.Compare(a.begin, b.begin) })
	}
	a.findCalls()
	origin := math.NaN()
	for i := range a.spots {
		s := &a.spots[i]
		c := &s.about
		if c.ms = s.at; math.IsNaN(s.at) {
			continue
		}
		origin = timeOr(origin, s.at)
		if c.session >= 0 {
			if err := a.start(&a.sessions[c.session], c); err != nil {
				a.failed = &trace.RowError{File: a.files[s.file].name, Line: int(s.line), Err: trace.ReadError{Err: err}}
				return
			}
		}
		if !c.delays {
			c.ms -= origin
		}
	}
}

// findCalls finds the requests that begin and end a call of a sub-agent. A request begins another
// call if it is in one, by the tools of the caller, that the request before it is not in.
func (a *agents) findCalls() {
	for i := range a.spots {
		at, c := a.spots[i].at, &a.spots[i].about
		if c.session < 0 || math.IsNaN(at) {
			continue
		}
		s := &a.sessions[c.session]
		if s.parent >= 0 {
			by := &a.sessions[s.parent]
			for len(by.calls) > 0 && by.calls[0].begin <= at+by.slack {
				by.calling, by.calls = max(by.calling, by.calls[0].end), by.calls[1:]
			}
			c.again = s.called < at-s.slack && at-s.slack <= by.calling
			s.called = by.calling
		}
		if s.latest != nil {
			s.latest.ends = c.again
		}
		c.ends = true
		s.latest = c
	}
}

// start finds the start of the next request of a session, whose recorded time it has.
func (a *agents) start(s *session, c *call) error {
	c.number = s.turns
	s.turns++
	if a.recorded {
		return nil
	}
	t, parts := c.ms, s.until(c.ms)
	if s.parent >= 0 && (c.number == 0 || c.again || len(parts) == 0) {
		parts = append(parts, a.sessions[s.parent].caller(t)...)
	}
	last, err := a.next(&s.timeline, c, t, parts)
	c.kind = cmp.Or(c.kind, s.kindOf(last.end, t))
	if err != nil || s.parent < 0 || !c.ends {
		return err
	}
	return a.sessions[s.parent].add(s.agent())
}

// kindOf returns the kind of the delay from one time to another.
func (s *session) kindOf(last, t float64) trace.DelayKind {
	i, _ := slices.BinarySearch(s.tools, last-s.slack)
	switch {
	case s.parent >= 0, i < len(s.tools) && s.tools[i] <= t+s.slack: // no user talks to a sub-agent
		return trace.Tool
	case len(s.tools) > 0:
		return trace.Think
	}
	return ""
}

func (a *agents) request(record []byte, s *spot[call], r *trace.Request) error {
	*r = trace.ParseStored(record, r.HashIDs)
	c := &s.about
	switch {
	case math.IsNaN(c.ms):
		return nil
	case c.delays:
		r.Delay, r.DelayKind = trace.Some(c.ms), c.kind
	default:
		r.Timestamp = trace.Some(c.ms)
	}
	if c.session >= 0 && a.sessions[c.session].named {
		r.ID = a.id(c.ref)
	}
	if c.after != nil {
		r.After = make([]string, len(*c.after))
		for i, of := range *c.after {
			r.After[i] = a.id(of)
		}
	}
	return nil
}

func (a *agents) id(r ref) string {
	return a.sessions[r.session].name + ":" + strconv.Itoa(int(r.number))
}

// timeOr returns a time, or another one if it is NaN.
func timeOr(t, other float64) float64 {
	if math.IsNaN(t) {
		return other
	}
	return t
}

// roundToMicrosecond removes the rounding errors of milliseconds since 1970.
func roundToMicrosecond(ms float64) float64 { return math.Round(ms*1000) / 1000 }
