package measure

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"

	"moontide/trace"
	"moontide/trace/stats"
)

// Group holds the requests with similar values of a property, or for one model.
type Group struct {
	Name string
	From int // lowest value of the group
	// Sent requests were sent in the measured part; Share is their share of all groups.
	Sent  int
	Share float64
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

// groupCollector collects the requests of a Group.
type groupCollector struct {
	Group
	isl    int
	values [3][]float64 // TTFT, TPOT and E2EL
}

// complete adds a completed request and its prediction, which may be nil.
func (g *groupCollector) complete(q *Request, p *PredictedRequest) {
	g.Completed++
	for i, l := range [...]Latency{TTFT, TPOT, E2EL} {
		if value := q.Latency(l); value.Set {
			g.values[i] = append(g.values[i], value.Value)
		}
	}
	g.isl += int(q.ISL)
	c := &g.Cached
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

// groupBy groups the requests that have a key, in the order of keys.
func groupBy[K cmp.Ordered](c *collector, keyOf func(q *Request) (key K, ok bool), describe func(key K) (name string, from int)) (all []Group) {
	groups, sent := map[K]*groupCollector{}, 0
	for q := range c.all {
		key, ok := keyOf(q)
		if !ok {
			continue
		}
		g := groups[key]
		if g == nil {
			g = &groupCollector{}
			g.Name, g.From = describe(key)
			groups[key] = g
		}
		if q.WasSent && c.opts.Window.Has(q.Sent) {
			g.Sent++
			sent++
		}
		if q.Counted && q.predicted > 0 {
			g.complete(q, &c.predictions[q.predicted-1])
		} else if q.Counted {
			g.complete(q, nil)
		} else if q.Ended && q.Class.Failed() {
			g.Failed++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		g.Share, g.ISL = float64(g.Sent)/float64(max(sent, 1)), trace.Ratio(g.isl, g.Completed).Value
		g.TTFT, g.TPOT, g.E2EL = stats.Of(g.values[0]), stats.Of(g.values[1]), stats.Of(g.values[2])
		all = append(all, g.Group)
	}
	return all
}

// byModel groups the requests by model, if the records name them.
func (c *collector) byModel() []Group {
	return groupBy(c, func(q *Request) (string, bool) { return q.model.Value(), q.model.Value() != "" }, func(name string) (string, int) { return name, 0 })
}

// byNumber groups the completed and failed requests, of sessions or all, by a number.
func (c *collector) byNumber(ofSessions bool, keyOf func(q *Request) int, describe func(key int) (name string, from int)) []Group {
	all := groupBy(c, func(q *Request) (int, bool) { return keyOf(q), q.inSession || !ofSessions }, describe)
	return slices.DeleteFunc(all, func(g Group) bool { return g.Completed+g.Failed == 0 })
}

// byISL groups by ISL, doubling from group to group.
func (c *collector) byISL(ofSessions bool) []Group {
	const first = 512
	return c.byNumber(ofSessions, func(q *Request) int { return bits.Len32(uint32(q.ISL) / first) }, func(key int) (string, int) {
		if key == 0 {
			return fmt.Sprintf("below %d", first), 0
		}
		from := first << (key - 1)
		return fmt.Sprintf("%d to %d", from, 2*from-1), from
	})
}

// MaxEachTurn is the last turn with a group of its own in [Sessions.EachTurn].
const MaxEachTurn = 100

// turnGroups are the first turns of the groups in [Sessions.ByTurn].
var turnGroups = []int{1, 2, 3, 4, 6, 11, 21, 51, MaxEachTurn + 1}

func turnName(from, to int) string {
	switch {
	case from > MaxEachTurn:
		return fmt.Sprintf("over %d", MaxEachTurn)
	case from == to:
		return strconv.Itoa(from)
	}
	return fmt.Sprintf("%d-%d", from, to)
}

func (c *collector) byTurn() []Group {
	return c.byNumber(true, func(q *Request) int {
		i, found := slices.BinarySearch(turnGroups, int(q.Turn))
		if !found {
			i--
		}
		return i
	}, func(i int) (string, int) {
		from := turnGroups[i]
		if i+1 < len(turnGroups) {
			return turnName(from, turnGroups[i+1]-1), from
		}
		return turnName(from, from), from
	})
}

func (c *collector) byEachTurn() []Group {
	return c.byNumber(true, func(q *Request) int { return min(int(q.Turn), MaxEachTurn+1) }, func(turn int) (string, int) { return turnName(turn, turn), turn })
}
