package measure

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"moontide/trace"
	"moontide/trace/stats"
)

// Group holds the requests with similar values of a property.
type Group struct {
	Name string
	From int // lowest value of the group
	// Completed requests are covered by the latencies: with a window, those entirely
	// inside it. Failed requests ended inside it.
	Completed, Failed int
	TTFT, TPOT, E2EL  stats.Sample
	ISL               float64 // mean
	Cached            CachedTokens
}

// CachedTokens sums the cached tokens of requests.
type CachedTokens struct {
	Requests int // with the server's count of cached tokens
	Input    int // prompt tokens of all
	Measured int
	// Of those that a [CachePrediction] covers, and the equal ones among them:
	Compared, Predicted, Equal int
}

// Share returns a number of tokens as a share of the input, absent if the server
// reported no cached tokens.
func (c CachedTokens) Share(tokens int) trace.Opt[float64] {
	if c.Requests == 0 {
		return trace.Opt[float64]{}
	}
	return trace.Ratio(tokens, c.Input)
}

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
	sent, completed, failed, isl int
	cached                       CachedTokens
	values                       [len(groupLatencies)][]float64
}

// addToGroup adds a request to a group if it completed or failed.
func (c *collector) addToGroup(g *groupCollector, q *Request) {
	switch {
	case q.Counted:
		g.complete(q, c.predicted(q.Row))
	case q.Class.Failed() && q.Ended:
		g.failed++
	}
}

// complete adds a completed request; p may be nil.
func (g *groupCollector) complete(q *Request, p *PredictedRequest) {
	g.completed++
	for i, l := range groupLatencies {
		if value := q.Latency(l); value.Set {
			g.values[i] = append(g.values[i], value.Value)
		}
	}
	g.isl += int(q.ISL)
	c := &g.cached
	c.Input += q.InputTokens()
	if q.Cached >= 0 {
		c.Requests++
		c.Measured += int(q.Cached)
	}
	if p != nil {
		c.Compared++
		c.Predicted += p.Predicted
		if p.Cause == "" {
			c.Equal++
		}
	}
}

func (g *groupCollector) group(name string, from int) Group {
	return Group{
		Name: name, From: from, Completed: g.completed, Failed: g.failed,
		TTFT: stats.Of(g.values[0]), TPOT: stats.Of(g.values[1]), E2EL: stats.Of(g.values[2]),
		ISL: trace.Ratio(g.isl, g.completed).Value, Cached: g.cached,
	}
}

// modelGroups groups the requests by model.
func (c *collector) modelGroups() (all []ModelGroup) {
	groups, sent := map[string]*groupCollector{}, 0
	for i := range c.requests {
		q := &c.requests[i]
		name := q.model.Value()
		if name == "" {
			continue
		}
		if groups[name] == nil {
			groups[name] = &groupCollector{}
		}
		if q.WasSent && c.opts.Window.Has(q.Sent) {
			groups[name].sent++
			sent++
		}
		c.addToGroup(groups[name], q)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		all = append(all, ModelGroup{g.group(name, 0), g.sent, float64(g.sent) / float64(max(sent, 1))})
	}
	return all
}

// band covers values from the previous band's limit to below its own.
type band struct {
	below int
	name  string
}

// MaxEachTurn is the last turn with a group of its own in [Sessions.EachTurn].
const MaxEachTurn = 100

var turnBands = []band{
	{2, "1"}, {3, "2"}, {4, "3"}, {6, "4-5"}, {11, "6-10"}, {21, "11-20"}, {51, "21-50"}, {MaxEachTurn + 1, "51-100"},
	{math.MaxInt, "over 100"},
}

// eachTurn has a band for each turn up to MaxEachTurn.
func eachTurn() (bands []band) {
	for turn := 1; turn <= MaxEachTurn; turn++ {
		bands = append(bands, band{turn + 1, strconv.Itoa(turn)})
	}
	return append(bands, turnBands[len(turnBands)-1])
}

func islBands() []band {
	const first = 512
	bands := []band{{first, fmt.Sprintf("below %d", first)}}
	for low := first; low <= math.MaxInt32; low *= 2 {
		bands = append(bands, band{2 * low, fmt.Sprintf("%d to %d", low, 2*low-1)})
	}
	return bands
}

func islOf(q *Request) int  { return int(q.ISL) }
func turnOf(q *Request) int { return int(q.Turn) }

// groups groups the completed and failed requests, of sessions or all, by a property.
func (c *collector) groups(bands []band, lowest int, ofSessions bool, of func(*Request) int) (groups []Group) {
	all := make([]groupCollector, len(bands))
	for i := range c.requests {
		if q := &c.requests[i]; q.inSession || !ofSessions {
			value := of(q)
			c.addToGroup(&all[slices.IndexFunc(bands, func(b band) bool { return value < b.below })], q)
		}
	}
	for i := range all {
		if g := &all[i]; g.completed+g.failed > 0 {
			groups = append(groups, g.group(bands[i].name, lowest))
		}
		lowest = bands[i].below
	}
	return groups
}

// predictionsByRow returns the first prediction of a row, nil if there is none.
func predictionsByRow(each []PredictedRequest) func(row int) *PredictedRequest {
	order := make([]int32, len(each))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(each[a].Row, each[b].Row) })
	return func(row int) *PredictedRequest {
		at, found := slices.BinarySearchFunc(order, row, func(i int32, row int) int { return cmp.Compare(each[i].Row, row) })
		if !found {
			return nil
		}
		return &each[order[at]]
	}
}
