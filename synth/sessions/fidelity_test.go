package sessions_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/synth/sessions"
	"moontide/synth/spec"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/format"
	"moontide/trace/tracetest"
	"moontide/traces"
)

func conversation(t testing.TB) []trace.Request {
	t.Helper()
	return tracetest.Conversation(t, format.Open, format.Options{})
}

var conversationFit struct {
	once  sync.Once
	model *sessions.Model
}

// conversationModel returns the model of the conversation trace.
func conversationModel(t testing.TB) *sessions.Model {
	t.Helper()
	rows := conversation(t) // skips the test if the trace is missing
	conversationFit.once.Do(func() { conversationFit.model = fit(t, rows, sessions.Options{}) })
	return conversationFit.model
}

func fit(t testing.TB, rows []trace.Request, opts sessions.Options) *sessions.Model {
	t.Helper()
	m, err := sessions.Fit(trace.FromSlice(rows), opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func draw(t testing.TB, m *sessions.Model, seed uint64, n int) []trace.Request {
	t.Helper()
	rows, err := trace.Collect(m.Requests(seed, n))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// infinite is the size of a cache that never evicts.
const infinite = math.MaxInt

// capacities are the cache sizes of the public traces' comparison.
var capacities = []int{1000, 10_000, 30_000, 50_000, 100_000, infinite}

// likeness is the analysis of a trace and its hit rates by cache size.
type likeness struct {
	*analyze.Analysis
	hits []float64
}

func look(t testing.TB, rows []trace.Request, blockSize int, capacities []int) likeness {
	t.Helper()
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: blockSize})
	if err != nil {
		t.Fatal(err)
	}
	l := likeness{Analysis: a}
	var table block.Table
	var b cache.CurveBuilder
	var numbers []uint32
	for _, r := range rows {
		numbers = table.AppendNumbers(numbers[:0], r.HashIDs)
		b.Add(numbers, r.InputLength)
	}
	curve := b.Curve(max(blockSize, 1))
	for _, c := range capacities {
		l.hits = append(l.hits, curve.At(c).Rates().Block)
	}
	return l
}

// distances are differences between drawn traces and their source: means over
// seeds.
type distances struct {
	isl, osl, context, gap float64 // Kolmogorov-Smirnov
	std, spearman          float64 // relative; absolute
	turns, think           float64 // relative
	hits                   []float64
}

func (d distances) String() string {
	var hits strings.Builder
	for _, h := range d.hits {
		fmt.Fprintf(&hits, " %+.4f", h)
	}
	return fmt.Sprintf("KS ISL %.4f OSL %.4f context %.4f gap %.4f; ISL std %+.3f, Spearman %+.3f, turns %+.3f, think time %+.3f; hits%s",
		d.isl, d.osl, d.context, d.gap, d.std, d.spearman, d.turns, d.think, hits.String())
}

// compare draws n requests with each of several seeds.
func compare(t testing.TB, source []trace.Request, m *sessions.Model, n, seeds int, capacities []int) distances {
	t.Helper()
	size := m.BlockSize().Tokens
	from := look(t, source, size, capacities)
	d := distances{hits: make([]float64, len(capacities))}
	each := 1 / float64(seeds)
	for seed := range uint64(seeds) {
		to := look(t, draw(t, m, seed, n), size, capacities)
		c := analyze.Compare(from.Analysis, to.Analysis)
		d.isl += c.ISL.Value.KS * each
		d.osl += c.OSL.Value.KS * each
		d.context += c.Context.Value.KS * each
		d.gap += c.Gap.Value.KS * each
		d.std += (to.ISL.Std/from.ISL.Std - 1) * each
		d.spearman += (to.Lengths.Spearman.Value - from.Lengths.Spearman.Value) * each
		if from.Sessions != nil && from.Sessions.MultiTurn > 0 {
			d.turns += (to.Sessions.Turns.Mean/from.Sessions.Turns.Mean - 1) * each
			pause := func(l likeness) float64 {
				if l.Sessions.Delay.Count > 0 {
					return l.Sessions.Delay.Mean
				}
				return l.Sessions.Gap.Mean
			}
			d.think += (pause(to)/pause(from) - 1) * each
		}
		for i := range capacities {
			d.hits[i] += (to.hits[i] - from.hits[i]) * each
		}
	}
	return d
}

// bands are the allowed distances; hits has one for each capacity, or one for all.
type bands struct {
	lengths, context, gap, std, spearman, turns, think float64
	hits                                               []float64
}

func (d distances) within(t *testing.T, b bands) {
	t.Helper()
	t.Log(d)
	for _, c := range []struct {
		name      string
		got, band float64
	}{
		{"KS of ISL", d.isl, b.lengths},
		{"KS of OSL", d.osl, b.lengths},
		{"KS of context", d.context, b.context},
		{"KS of gaps", d.gap, b.gap},
		{"ISL std", d.std, b.std},
		{"Spearman", d.spearman, b.spearman},
		{"turns", d.turns, b.turns},
		{"think time", d.think, b.think},
	} {
		if !(math.Abs(c.got) <= c.band) {
			t.Errorf("%s is %+.4f off, want at most %v", c.name, c.got, c.band)
		}
	}
	for i, h := range d.hits {
		if band := b.hits[min(i, len(b.hits)-1)]; !(math.Abs(h) <= band) {
			t.Errorf("block hit rate at size %d is %+.4f off, want at most %v", i, h, band)
		}
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	rows := conversation(t)
	m := conversationModel(t)
	compare(t, rows, m, len(rows), 10, capacities).within(t, bands{
		lengths: .02, context: .02, gap: .01, std: .05, spearman: .03, turns: .02, think: .05, hits: []float64{.01, .01, .01, .01, .01, .0125},
	})
}

// No prompt is longer or shorter than the source's, apart from rounding, although
// sessions may last longer.
func TestConversationRange(t *testing.T) {
	rows := conversation(t)
	m := conversationModel(t)
	low, high := islRange(rows)
	for _, r := range draw(t, m, 2, 60_000) {
		if isl := float64(r.InputLength); isl < low || isl > high {
			t.Fatalf("ISL %v, want %v to %v", isl, low, high)
		}
	}
}

// A longer trace continues with new sessions instead of the same prompts.
func TestConversationTenTimesLonger(t *testing.T) {
	t.Parallel()
	rows := conversation(t)
	m := conversationModel(t)
	finite := capacities[:len(capacities)-1]
	compare(t, rows, m, 120_000, 3, finite).within(t, bands{
		lengths: .03, context: .03, gap: .01, std: .06, spearman: .03, turns: .06, think: .2, hits: []float64{.02},
	})
}

// The method was developed with the whole trace; parts of it are new to it.
func TestPartsOfConversation(t *testing.T) {
	t.Parallel()
	all := conversation(t)
	for _, part := range []struct{ from, to float64 }{
		{0, .5}, {.5, 1}, {0, .25}, {.25, .5}, {.5, .75}, {.75, 1}, {.3, .45},
	} {
		t.Run(fmt.Sprintf("%v to %v", part.from, part.to), func(t *testing.T) {
			n := float64(len(all))
			rows := all[int(n*part.from):int(n*part.to)]
			m := fit(t, rows, sessions.Options{})
			compare(t, rows, m, len(rows), 5, capacities).within(t, bands{
				lengths: .025, context: .03, gap: .01, std: .08, spearman: .04, turns: .03, think: .1, hits: []float64{.005, .035},
			})
		})
	}
}

// Where bands are wider than for the whole conversation trace, doc.go explains
// why.
func TestOtherWorkloads(t *testing.T) {
	t.Parallel()
	usual := bands{lengths: .02, context: .02, gap: .02, std: .05, spearman: .03, turns: .05, think: .1, hits: []float64{.02}}
	wide := func(change func(*bands)) bands {
		b := usual
		change(&b)
		return b
	}
	of := map[string]bands{
		"agents": wide(func(b *bands) { b.lengths, b.context, b.gap, b.think = .035, .035, .03, .25 }),
		"documents": wide(func(b *bands) {
			b.lengths, b.context, b.gap, b.think, b.hits = .04, .04, .03, .25, []float64{.075, .02}
		}),
		"toolagent": wide(func(b *bands) { b.think = .5 }),
		"unshared":  wide(func(b *bands) { b.std = .12 }),
	}
	for _, name := range slices.Sorted(maps.Keys(workloads)) {
		t.Run(name, func(t *testing.T) {
			w := workloads[name]
			rows := w.rows()
			m := fitted(t, name)
			blocks := 0
			for _, r := range rows {
				blocks += len(r.HashIDs)
			}
			sizes := []int{blocks / 300, blocks / 100, blocks / 30, blocks / 10, blocks / 5, infinite}
			b, ok := of[name]
			if !ok {
				b = usual
			}
			compare(t, rows, m, len(rows), 5, sizes).within(t, b)
		})
	}
}

// The sources are drawn from the specs in traces/, with delays and with timestamps.
func TestSpecWorkloads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		bands
	}{
		{"chat", bands{lengths: .025, context: .025, gap: .04, std: .06, spearman: .03, turns: .03, think: .05, hits: []float64{.01}}},
		{"agent", bands{lengths: .035, context: .035, gap: .05, std: .13, spearman: .03, turns: .05, think: .12, hits: []float64{.075, .025, .01}}},
		{"long-document", bands{lengths: .04, context: .04, gap: .04, std: .06, spearman: .03, turns: .03, think: .06, hits: []float64{.04, .05, .03}}},
	} {
		for _, timestamps := range []string{"sessions", "all"} {
			t.Run(c.name+" "+timestamps, func(t *testing.T) {
				rows := fromSpec(t, c.name, timestamps, 8000)
				m := fit(t, rows, sessions.Options{BlockSize: 512})
				compare(t, rows, m, len(rows), 3, []int{300, 1000, 10_000, infinite}).within(t, c.bands)
			})
		}
	}
}

// fromSpec draws from a spec in traces/.
func fromSpec(t *testing.T, name, timestamps string, n int) []trace.Request {
	t.Helper()
	text, ok := traces.Spec(name)
	if !ok {
		t.Fatalf("no spec %q", name)
	}
	if timestamps == "all" {
		text = bytes.ReplaceAll(text, []byte("max_isl:"), []byte("timestamps: all\n      max_isl:"))
		if name != "agent" { // its sessions are deeper
			text = bytes.ReplaceAll(text, []byte("\n      max_isl"), []byte("\n  max_isl"))
		}
	}
	d, err := spec.Parse(text, spec.Options{Name: name, Settings: []spec.Setting{{Key: "num_requests", Value: fmt.Sprint(n)}}})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := trace.Collect(d.Requests())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
