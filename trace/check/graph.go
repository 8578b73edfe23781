package check

import (
	"errors"
	"fmt"

	"moontide/trace"
)

// graph checks the request ids and that the rows that wait for others can be sent.
type graph struct {
	found   *findings
	builder trace.GraphBuilder
	lines   map[string]int  // first row of each request_id
	named   map[string]bool // ids in after
	twice   []string        // ids that several rows have
}

func (c *graph) add(line int, r *trace.Request) {
	if r.DelayKind != "" && !r.Delay.Set {
		c.found.add(KindWithoutDelay, line, "delay_kind %s, no delay", r.DelayKind)
	}
	row := trace.Request{SessionID: r.SessionID, ID: r.ID, After: r.After}
	if first, twice := c.lines[r.ID]; twice {
		c.found.add(DuplicateRequestID, line, "request_id %.40q, as line %d", r.ID, first)
		c.twice = append(c.twice, r.ID)
		row.ID = "" // after then names the first one
	} else if r.ID != "" {
		c.lines[r.ID] = line
	}
	for _, id := range r.After {
		c.named[id] = true
	}
	c.builder.Add(row, line)
}

func (c *graph) finish() {
	for _, id := range c.twice {
		if c.named[id] {
			f := c.found.of(DuplicateRequestID)
			f.Severity = Error
			f.Message = fmt.Sprintf("The row has the request_id of an earlier row, and other rows name such an id in after, for example %.40q: which row they wait for is ambiguous, so a replay refuses the trace.", id)
			break
		}
	}
	g, err := c.builder.Graph()
	var cycle *trace.GraphError
	if errors.As(err, &cycle) {
		c.found.add(Cycle, cycle.Line, "%s", cycle.Text)
	}
	for _, lost := range g.LostIDs() {
		c.found.add(MissingRequest, lost.Line, "after names request_id %.40q", lost.ID)
	}
	if n := g.Lost(); n > 0 {
		c.found.of(MissingRequest).Count = n
	}
}
