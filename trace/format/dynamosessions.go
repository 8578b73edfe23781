package format

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace"
)

// dynamoTimeline is that of an agent or a sub-agent. The requests of a sub-agent belong to
// calls: it may be called again.
type dynamoTimeline struct {
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
func (d *dynamo) numberOf(session, parent string) int32 {
	if session == "" {
		return -1
	}
	n, isNew := d.sessionOf(session)
	if isNew {
		d.timelines = append(d.timelines, dynamoTimeline{parent: -1, timeline: timeline{slack: 1}})
	}
	if parent != session && d.timelines[n].parent < 0 {
		of := d.numberOf(parent, "") // may move the timelines
		d.timelines[n].parent = of
	}
	return n
}

// complete finds the starts of all requests.
func (d *dynamo) complete() {
	for i := range d.timelines {
		d.timelines[i].sortTools()
	}
	d.countCalls()
	d.startAll(d.start)
	d.timelines = nil
}

// sortTools sorts the tools by end, and the sub-agents by begin. Their ends become
// the latest of all up to them.
func (s *dynamoTimeline) sortTools() {
	slices.Sort(s.tools)
	slices.SortFunc(s.agents, func(a, b toolCall) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(s.agents); i++ {
		s.agents[i].end = max(s.agents[i].end, s.agents[i-1].end)
	}
}

// inOneCall reports whether a call of a sub-agent began at or before from and ended at
// or after to.
func (s *dynamoTimeline) inOneCall(from, to float64) bool {
	n, _ := slices.BinarySearchFunc(s.agents, from+s.slack, func(c toolCall, t float64) int {
		if c.begin <= t {
			return -1
		}
		return 1
	})
	return n > 0 && s.agents[n-1].end >= to-s.slack
}

// usedTool reports whether a tool ended within a time.
func (s *dynamoTimeline) usedTool(from, to float64) bool {
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
		s := &d.timelines[n]
		again := false
		if s.parent >= 0 && len(s.calls) > 0 {
			by := &d.timelines[s.parent]
			again = by.inOneCall(at, at) && !by.inOneCall(s.last, at)
		}
		if len(s.calls) == 0 || again {
			s.calls = append(s.calls, 0)
		}
		s.calls[len(s.calls)-1]++
		s.last = at
	}
}

// start finds the start of a request that began at t.
func (d *dynamo) start(c *call, t float64) error {
	s := &d.timelines[c.session]
	c.number = s.turns
	parts := s.until(t)
	begins := s.left == 0
	if begins {
		s.left, s.calls, s.called = s.calls[0], s.calls[1:], t
	}
	if s.parent >= 0 && (begins || len(parts) == 0) {
		parts = append(parts, d.timelines[s.parent].caller(t)...)
	}
	c.kind = s.kindOf(parts, t)
	if err := d.next(&s.timeline, c, t, parts); err != nil {
		return err
	}
	if s.left--; s.left > 0 || s.parent < 0 {
		return nil
	}
	return d.timelines[s.parent].add(s.agentSince(s.called))
}

// kindOf returns the kind of the delay of a request that waits for parts and began at t.
func (s *dynamoTimeline) kindOf(parts []part, t float64) trace.DelayKind {
	last := math.Inf(-1)
	for _, p := range parts {
		if last = max(last, p.end); p.agent {
			return trace.Tool
		}
	}
	switch {
	case s.parent >= 0 || s.usedTool(last, t):
		return trace.Tool // no user talks to a sub-agent
	case len(s.tools) > 0:
		return trace.Think
	}
	return ""
}
