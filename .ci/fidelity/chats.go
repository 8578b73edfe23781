package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"moontide/trace"
	"moontide/trace/stats"
)

const (
	blockSize = 512
	second    = 1000.0 // ms
	minute    = 60 * second
	hour      = 60 * minute
)

// course is a value that changes over a trace. Its argument is the time as a share
// of the trace, 0 to 1.
type course func(x float64) float64

func always(v float64) course { return func(float64) float64 { return v } }

// times returns the product of a course and a constant.
func (c course) times(v float64) course { return func(x float64) float64 { return v * c(x) } }

// chats draws conversations. A later prompt is the prompt before, its answer and
// new tokens.
type chats struct {
	name      string  // of the client: the key model of its rows, "" for none
	span      float64 // ms
	starts    course  // conversations per second
	most      float64 // the maximum of starts
	first     course  // mean tokens of a first prompt, behind its template
	more      course  // mean tokens that a later prompt adds
	answer    course  // mean tokens of an answer
	turns     float64 // mean turns of a conversation
	think     float64 // mean ms between an answer and the next prompt
	templates int     // shared prefixes, some of them popular
	prefix    int     // blocks of each
}

// drawn is the state of a drawing: the ids in use, and the rows.
type drawn struct {
	ids  uint64
	rows []trace.Request
}

func (d *drawn) fresh(n int) (ids []uint64) {
	for range n {
		ids = append(ids, d.ids)
		d.ids++
	}
	return ids
}

// draw draws the conversations of several clients, in order of arrival.
func draw(source string, clients ...chats) []trace.Request {
	var d drawn
	for _, c := range clients {
		c.draw(source+" "+c.name, &d)
	}
	slices.SortStableFunc(d.rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	return d.rows
}

func (c *chats) draw(aspect string, d *drawn) {
	random := stats.NewStream(0, aspect)
	shared := make([][]uint64, c.templates)
	for i := range shared {
		shared[i] = d.fresh(c.prefix)
	}
	popular := stats.NewZipf(max(1, c.templates), 1)
	for t := 0.0; ; {
		t += random.ExpFloat64() / c.most * second
		if t >= c.span {
			return
		}
		if random.Float64()*c.most >= c.starts(t/c.span) {
			continue
		}
		var prefix []uint64
		if c.templates > 0 {
			prefix = shared[popular.At(random.Float64())]
		}
		c.conversation(random, t, prefix, d)
	}
}

// conversation draws the turns of a conversation that starts at t and lie within
// the trace.
func (c *chats) conversation(random *rand.Rand, t float64, prefix []uint64, d *drawn) {
	x := t / c.span
	ids := slices.Clone(prefix)
	isl := len(prefix)*blockSize + length(random, c.first(x))
	for t < c.span {
		ids = append(ids, d.fresh((isl+blockSize-1)/blockSize-len(ids))...)
		osl := length(random, c.answer(x))
		row := trace.Request{Timestamp: trace.Some(math.Round(t)), InputLength: isl, OutputLength: osl, HashIDs: ids}
		if c.name != "" {
			row.Extra = []byte(`{"model": "` + c.name + `"}`)
		}
		d.rows = append(d.rows, row)
		if random.Float64() >= 1-1/c.turns {
			return
		}
		ids = slices.Clone(ids[:isl/blockSize]) // the partial block changes
		t += trace.AnswerTime(osl) + lognormal(random, c.think, 1.2)
		x = min(t/c.span, 1)
		isl += osl + length(random, c.more(x))
	}
}

// length draws a number of tokens of a mean.
func length(random *rand.Rand, mean float64) int {
	return max(1, int(lognormal(random, mean, 1)))
}

func lognormal(random *rand.Rand, mean, cv float64) float64 {
	return stats.NewLognormal(mean, cv).Quantile(1 - random.Float64()*(1-stats.MinP))
}
