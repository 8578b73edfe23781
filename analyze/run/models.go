package run

import (
	"maps"
	"slices"

	"moontide/replay"
	"moontide/trace/stats"
)

// ModelGroup holds the requests for one of several models.
type ModelGroup struct {
	Group
	Requests int     // sent, with a window inside it
	Share    float64 // of those of all models
}

// groupLatencies are the latencies of a Group.
var groupLatencies = [...]Latency{TTFT, TPOT, E2EL}

// groupCollector collects the requests of a Group.
type groupCollector struct {
	sent, completed, failed int
	values                  [len(groupLatencies)][]float64
}

// complete adds a completed request.
func (g *groupCollector) complete(t *Timing) {
	g.completed++
	for i, l := range groupLatencies {
		if value := t.Latency(l); value.Set {
			g.values[i] = append(g.values[i], value.Value)
		}
	}
}

func (g *groupCollector) group(name string) Group {
	return Group{name, g.completed, g.failed, stats.Of(g.values[0]), stats.Of(g.values[1]), stats.Of(g.values[2])}
}

// modelCollector collects the requests by model.
type modelCollector struct{ byName map[string]*groupCollector }

func (c *modelCollector) add(rec *replay.Record, timing Timing, window Span, completed bool) {
	g := c.byName[rec.Model]
	if g == nil {
		if c.byName == nil {
			c.byName = map[string]*groupCollector{}
		}
		g = &groupCollector{}
		c.byName[rec.Model] = g
	}
	if rec.Sent.Set && window.Has(rec.Sent.Value) {
		g.sent++
	}
	switch {
	case completed:
		g.complete(&timing)
	case rec.Class.Failed() && window.Has(rec.Done):
		g.failed++
	}
}

func (c *modelCollector) groups() (all []ModelGroup) {
	sent := 0
	for _, g := range c.byName {
		sent += g.sent
	}
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		g := c.byName[name]
		all = append(all, ModelGroup{g.group(name), g.sent, float64(g.sent) / float64(max(sent, 1))})
	}
	return all
}
