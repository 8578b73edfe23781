package run

import (
	"cmp"
	"slices"
	"strconv"

	"moontide/trace"
)

// TurnBands returns the groups of turns that reports have: their names, and the first
// turns of all but the first.
func TurnBands() (names []string, from []float64) {
	for i, b := range turnBands {
		names = append(names, b.name)
		if i > 0 {
			from = append(from, turnBands[i-1].below)
		}
	}
	return names, from
}

// MaxEachTurn is the last turn with a group of its own in [Sessions.EachTurn].
const MaxEachTurn = 100

// TurnGroup holds the completed requests with similar turn numbers or ISLs.
type TurnGroup struct {
	Group
	From   int // lowest turn or ISL of the group
	ISL    float64
	Cached CachedTokens
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

// groupTurns groups the requests by turn and by ISL.
func (c *collector) groupTurns(s *Sessions) {
	for i := range c.requests {
		if q := &c.requests[i]; q.inSession {
			s.turns = append(s.turns, rowTurn{q.Row, q.Turn})
		}
	}
	each := make([]band, 0, MaxEachTurn+1)
	for turn := 1; turn <= MaxEachTurn; turn++ {
		each = append(each, band{float64(turn + 1), strconv.Itoa(turn)})
	}
	each = append(each, turnBands[len(turnBands)-1])
	predicted := predictionsByRow(c.result.Cache.Prediction.Each)
	turn := func(q *Request) int { return int(q.Turn) }
	isl := func(q *Request) int { return int(q.ISL) }
	s.ByTurn = c.groups(turnBands, 1, turn, predicted)
	s.EachTurn = c.groups(each, 1, turn, predicted)
	s.ByISL = c.groups(islBands(), 0, isl, predicted)
}

// groups groups the requests by a property with a lowest value.
func (c *collector) groups(bands []band, lowest int, of func(*Request) int, predicted func(row int) *PredictedRequest) (groups []TurnGroup) {
	all := make([]turnCollector, len(bands))
	for i := range c.requests {
		q := &c.requests[i]
		failed := q.Class.Failed() && c.opts.Window.Has(q.End)
		if !q.inSession || !q.Counted && !failed {
			continue
		}
		at, _ := slices.BinarySearchFunc(bands, float64(of(q)), func(b band, value float64) int {
			if b.below <= value {
				return -1
			}
			return 1
		})
		if g := &all[at]; failed {
			g.failed++
		} else {
			g.add(q, predicted(q.Row))
		}
	}
	from := lowest
	for i := range all {
		if g := &all[i]; g.completed+g.failed > 0 {
			groups = append(groups, TurnGroup{g.group(bands[i].name), from, trace.Ratio(g.isl, g.completed).Value, g.cached})
		}
		if below := bands[i].below; i < len(bands)-1 {
			from = int(below)
		}
	}
	return groups
}

// turnCollector collects the requests of a TurnGroup.
type turnCollector struct {
	groupCollector
	isl    int
	cached CachedTokens
}

func (g *turnCollector) add(q *Request, p *PredictedRequest) {
	g.complete(&q.Timing)
	g.isl += int(q.ISL)
	c := &g.cached
	c.Input += int(q.input)
	if q.cached >= 0 {
		c.Requests++
		c.Measured += int(q.cached)
	}
	if p != nil {
		c.Compared++
		c.Predicted += p.Predicted
		if p.Cause == "" {
			c.Equal++
		}
	}
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
