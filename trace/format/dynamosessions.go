package format

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// dynamoSessions holds the sessions of a Dynamo log.
type dynamoSessions struct {
	links    links
	sessions []dynamoSession
	overlap  int // see maxOverlap
}

// dynamoSession is an agent or a sub-agent. The requests of a sub-agent belong to
// calls: it may be called again.
type dynamoSession struct {
	timeline
	parent int32      // number of the session, or -1
	tools  []float64  // ends of the tools that it used
	agents []toolCall // its calls of sub-agents
	calls  []int32    // number of requests of each call of this session
	last   float64    // begin of its latest request
	left   int32      // remaining requests of the current call
	called float64    // begin of the first request of the current call
}

// toolCall is when a tool ran, in ms since 1970.
type toolCall struct{ begin, end float64 }

// numberOf returns the number of a session, or -1 for none.
func (d *dynamoSessions) numberOf(session, parent string) int32 {
	if session == "" {
		return -1
	}
	n, known := d.links.sessionOf(session)
	if !known {
		d.sessions = append(d.sessions, dynamoSession{parent: -1, timeline: timeline{slack: 1}})
	}
	if parent != session && d.sessions[n].parent < 0 {
		of := d.numberOf(parent, "") // may move the sessions
		d.sessions[n].parent = of
	}
	return n
}

// readTool keeps the times of a tool call that has ended.
func (d *dynamo) readTool(e *event) {
	call := toolCall{math.NaN(), math.NaN()}
	agent := false
	err := readMembers("tool.", e.tool, keys{
		{"started_at_unix_ms", into(&call.begin, parseMilliseconds)},
		{"ended_at_unix_ms", into(&call.end, parseMilliseconds)},
		{"tool_class", into(&agent, func(raw []byte) (bool, error) { return bytes.Contains(bytes.ToLower(raw), []byte("agent")), nil })},
	}, nil, nil)
	session := d.numberOf(e.session, e.parent)
	if err != nil || session < 0 || !(call.begin <= call.end) {
		d.notes.count("tool calls left out because they have no session or no valid times")
		return
	}
	d.notes.count("tool calls, used to tell tool times from think times")
	of := &d.sessions[session]
	of.tools = append(of.tools, call.end)
	if agent {
		of.agents = append(of.agents, call)
	}
}

// complete finds the starts of all requests.
func (d *dynamo) complete() {
	for i := range d.sessions {
		d.sessions[i].sortTools()
	}
	d.countCalls()
	origin := math.NaN()
	for i := range d.spots {
		s := &d.spots[i]
		s.about.start = start{ms: s.at, waits: previousTurn}
		if math.IsNaN(s.at) {
			continue
		}
		if math.IsNaN(origin) {
			origin = s.at
		}
		if s.about.session >= 0 && !d.recorded {
			if err := d.setStart(s.at, &s.about); err != nil {
				d.failAt(s, err)
				return
			}
		}
		if !s.about.delays {
			s.about.ms -= origin
		}
	}
	d.sessions = nil
}

// sortTools sorts the tools by end, and the sub-agents by begin. Their ends become
// the latest of all up to them.
func (s *dynamoSession) sortTools() {
	slices.Sort(s.tools)
	slices.SortFunc(s.agents, func(a, b toolCall) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(s.agents); i++ {
		s.agents[i].end = max(s.agents[i].end, s.agents[i-1].end)
	}
}

// inOneCall reports whether a call of a sub-agent began at or before from and ended at
// or after to.
func (s *dynamoSession) inOneCall(from, to float64) bool {
	n, _ := slices.BinarySearchFunc(s.agents, from+s.slack, func(c toolCall, t float64) int {
		if c.begin <= t {
			return -1
		}
		return 1
	})
	return n > 0 && s.agents[n-1].end >= to-s.slack
}

// usedTool reports whether a tool ended within a time.
func (s *dynamoSession) usedTool(from, to float64) bool {
	i, _ := slices.BinarySearch(s.tools, from-s.slack)
	return i < len(s.tools) && s.tools[i] <= to+s.slack
}

// countCalls counts the requests of each call of each session. A request begins
// another call if the caller's log says so: it is in a call of a sub-agent that the
// request before is not in.
func (d *dynamo) countCalls() {
	for i := range d.spots {
		at, n := d.spots[i].at, d.spots[i].about.session
		if math.IsNaN(at) || n < 0 {
			continue
		}
		s := &d.sessions[n]
		again := false
		if s.parent >= 0 && len(s.calls) > 0 {
			by := &d.sessions[s.parent]
			again = by.inOneCall(at, at) && !by.inOneCall(s.last, at)
		}
		if len(s.calls) == 0 || again {
			s.calls = append(s.calls, 0)
		}
		s.calls[len(s.calls)-1]++
		s.last = at
	}
}

// maxOverlap bounds the work of finding the ends of sub-agents whose requests overlap.
const maxOverlap = 1 << 28

// setStart finds the start of a request that began at t.
func (d *dynamo) setStart(t float64, at *dynamoCall) error {
	s := &d.sessions[at.session]
	at.number = s.next()
	parts := s.until(t)
	begins := s.left == 0
	if begins {
		s.left, s.calls, s.called = s.calls[0], s.calls[1:], t
	}
	if s.parent >= 0 && (begins || len(parts) == 0) {
		parts = append(slices.Clip(parts), d.sessions[s.parent].caller(t)...)
	}
	var err error
	if at.start, err = d.links.start(t, parts, s.previous); err != nil {
		return err
	}
	at.kind = s.causeOf(parts, t)
	s.addRequest(t, at.end, at.ref)
	if s.left--; s.left > 0 || s.parent < 0 {
		return nil
	}
	if d.overlap += len(s.running) + len(s.ended); d.overlap > maxOverlap {
		return fmt.Errorf("sub-agent session %.60q has too many overlapping requests", d.links.sessions[at.session])
	}
	d.sessions[s.parent].add(s.agentSince(s.called))
	return nil
}

// causeOf returns the cause of the delay of a request that waits for parts and began
// at t.
func (s *dynamoSession) causeOf(parts []part, t float64) delayCause {
	last := math.Inf(-1)
	for _, p := range parts {
		if last = max(last, p.end); p.agent {
			return toolRunning
		}
	}
	switch {
	case s.parent >= 0 || s.usedTool(last, t):
		return toolRunning // no user talks to a sub-agent
	case len(s.tools) > 0:
		return thinking
	}
	return unknownCause
}
