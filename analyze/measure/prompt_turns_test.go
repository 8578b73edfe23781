package measure_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/block"
)

// carrying is a request whose prompt continues another with the answer to it.
func carrying(base, tokens int, rec replay.Record) replay.Record {
	rec.SessionID = "s"
	rec.Base = replay.Base{Row: trace.Some(base), Answer: transcript.Generated{Tokens: tokens}}
	return rec
}

// answering is a request of a session with an answer of some tokens.
func answering(tokens int, rec replay.Record) replay.Record {
	rec.SessionID, rec.OutputLength = "s", tokens
	rec.Counts.Output, rec.Chunks = trace.Some(tokens), tokens
	return rec
}

func seq(from, n int) (ids []uint64) {
	for i := range n {
		ids = append(ids, uint64(from+i))
	}
	return ids
}

var liveOptions = measure.Options{BlockSize: 10, ServerBlockSize: 32, GeneratedCached: true, EachPrediction: true}

// The values are those of vLLM 0.32 for a prompt of 100 tokens and answers of several
// lengths, and for the trace's tokens instead of the answer.
func TestPredictionOfLiveAnswers(t *testing.T) {
	for n, want := range map[int]int{28: 96, 29: 128, 59: 128, 60: 128, 61: 160, 70: 160} {
		opts := liveOptions
		records := []replay.Record{
			answering(n, asked(0, 0, 50, 100, 0, seq(1, 10)...)),
			carrying(0, n, asked(1, 100, 150, 300, want, append(seq(1, 10), seq(100, 20)...)...)),
		}
		p := compute(t, opts, records...).Cache.Prediction
		if p.Predicted != want || p.Equal != 2 || p.TracePredicted != trace.Some(96) || p.FromAnswers != trace.Some(want-96) {
			t.Errorf("%d tokens: %+v", n, p)
		}
		opts.GeneratedCached = false
		if p := compute(t, opts, records...).Cache.Prediction; p.Predicted != 96 || p.FromAnswers != trace.Some(0) {
			t.Errorf("%d tokens that are not kept: %+v", n, p)
		}
	}
}

// A missing answer has a cause.
func TestCausesOfMissingAnswers(t *testing.T) {
	first, next := asked(0, 0, 50, 100, 0, seq(1, 10)...), append(seq(1, 10), seq(100, 20)...)
	for _, test := range []struct {
		name             string
		size             int // of the server's blocks
		template, second int // tokens that the server counts beyond the row's
		cached           int
		want             measure.Cause
	}{
		{"token ids", 32, 0, 0, 96, measure.Evicted},
		{"a chat template", 32, 7, 12, 160, ""}, // 107 tokens, and 59 of the answer
		{"a chat template, gone", 32, 7, 12, 128, measure.Evicted},
		{"unknown blocks", 0, 0, 0, 159, ""},
		{"unknown blocks of 16 tokens", 0, 0, 0, 144, ""},
		{"less than an unknown block", 0, 0, 0, 128, measure.Unknown},
		{"more than there can be", 32, 0, 0, 192, measure.Warm},
	} {
		opts := liveOptions
		opts.ServerBlockSize = test.size
		p := compute(t, opts,
			answering(60, counted(100+test.template, first)),
			carrying(0, 60, counted(300+test.second, asked(1, 100, 150, 300, test.cached, next...)))).Cache.Prediction
		if got := p.Each[1].Cause; got != test.want {
			t.Errorf("%s: %q, want %q: %+v", test.name, got, test.want, p.Each[1])
		}
		if unknown := p.AssumedBlock > 0; unknown != (test.size == 0) {
			t.Errorf("%s: assumed blocks of %d", test.name, p.AssumedBlock)
		}
	}
}

// naiveRow is a request of a model whose prompts are lists of tokens, those that package
// transcript says.
type naiveRow struct {
	rec    replay.Record
	prompt *transcript.Prompt
	tokens []string // of the prompt
	answer []string
}

const naiveBlock = 8 // of the trace

func (r *naiveRow) setPrompt(p *transcript.Prompt) {
	r.prompt = p
	for s := range p.Segments() {
		for i := range s.Len {
			r.tokens = append(r.tokens, fmt.Sprint(s.Kind, s.ID, s.From+i))
		}
	}
}

func common(a, b []string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// naiveRun draws sessions with sub-agents, compacted and rewritten contexts.
type naiveRun struct {
	*rapid.T
	rows    []*naiveRow
	dropped []int // of each row's answer
	nextID  uint64
}

func (d *naiveRun) add(session string, base *naiveRow) *naiveRow {
	row, sent := len(d.rows), float64(rapid.IntRange(0, 50).Draw(d.T, "start"))
	isl, ids := rapid.IntRange(1, 40).Draw(d.T, "ISL"), []uint64(nil)
	if base != nil {
		sent = base.rec.Done.Seconds()*1000 + float64(rapid.IntRange(1, 30).Draw(d.T, "delay"))
		keep := len(base.rec.HashIDs) - rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 3}).Draw(d.T, "blocks back")
		isl = max(1, len(base.tokens)+rapid.IntRange(-10, 60).Draw(d.T, "new"))
		ids = slices.Clone(base.rec.HashIDs[:max(0, min(keep, len(base.tokens)/naiveBlock, isl/naiveBlock))])
	} else {
		ids = []uint64{1, 2}[:min(rapid.IntRange(0, 2).Draw(d.T, "system"), isl/naiveBlock)]
	}
	for covered := rapid.Bool().Draw(d.T, "ids to the end"); len(ids) < isl/naiveBlock || covered && len(ids)*naiveBlock < isl; d.nextID++ {
		ids = append(ids, d.nextID)
	}
	sent += float64(row) / 1000 // no two at one instant
	n := rapid.IntRange(1, 40).Draw(d.T, "generated")
	rec := asked(row, sent, sent+float64(rapid.IntRange(1, 9).Draw(d.T, "TTFT")), isl, 0, ids...)
	rec.SessionID, rec.ID, rec.HashIDs = session, fmt.Sprint("r", row), append([]uint64{}, ids...)
	rec.OutputLength, rec.Counts.Output, rec.Chunks = n, trace.Some(n), n
	rec.Last = instant(rec.First.Value.Seconds()*1000 + float64(rapid.IntRange(0, 9).Draw(d.T, "streaming")))
	rec.Done = rec.Last.Value + at(0.0001)
	r := &naiveRow{rec: rec}
	for i := range n {
		r.answer = append(r.answer, fmt.Sprint(transcript.Reply, row, i))
	}
	if base != nil {
		r.rec.After = []string{base.rec.ID}
		dropped := d.dropped[base.rec.Row]
		r.rec.Base = replay.Base{Row: trace.Some(base.rec.Row), Answer: transcript.Generated{Tokens: len(base.answer) - dropped, Dropped: dropped}}
		p, _ := base.prompt.Continue(r.rec.Base.Answer, r.rec.Request, row)
		r.setPrompt(p)
	} else {
		r.setPrompt(transcript.New(r.rec.Request, row, naiveBlock))
	}
	d.rows = append(d.rows, r)
	d.dropped = append(d.dropped, rapid.SampledFrom([]int{0, 0, n / 2, n}).Draw(d.T, "dropped"))
	return r
}

func (d *naiveRun) draw() {
	d.nextID = 10
	for i := range rapid.IntRange(1, 3).Draw(d.T, "sessions") {
		base := d.add(fmt.Sprint("s", i), nil)
		for range rapid.IntRange(0, 5).Draw(d.T, "turns") {
			for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(d.T, "sub-agents") {
				d.add(fmt.Sprint("agent", len(d.rows)), base)
			}
			base = d.add(fmt.Sprint("s", i), base)
		}
	}
}

// cached returns what an infinite cache has of a prompt when it is sent: of all
// prompts sent before and all that was generated before.
func (d *naiveRun) cached(r *naiveRow, size int, generated bool) int {
	best := 0
	for _, other := range d.rows {
		if other == r {
			continue
		}
		if other.rec.Sent.Value < r.rec.Sent.Value {
			best = max(best, common(other.tokens, r.tokens))
		}
		if other.rec.Last.Value < r.rec.Sent.Value && generated {
			best = max(best, common(append(slices.Clone(other.tokens), other.answer[:len(other.answer)-1]...), r.tokens))
		}
	}
	return max(0, min(best, len(r.tokens)-1)) / size * size
}

// The prediction equals a comparison of lists of tokens.
func TestPredictionOfLiveAnswersIsThatOfTokens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &naiveRun{T: rt}
		d.draw()
		size := rapid.IntRange(1, 12).Draw(rt, "server block")
		opts := measure.Options{BlockSize: naiveBlock, ServerBlockSize: size, EachPrediction: true, GeneratedCached: rapid.Bool().Draw(rt, "generated cached")}
		var records, traced []replay.Record
		for _, r := range d.rows {
			r.rec.Counts.Cached = trace.Some(d.cached(r, size, opts.GeneratedCached))
			records = append(records, r.rec)
			r.rec.Base = replay.Base{}
			traced = append(traced, r.rec)
		}
		result := compute(rt, opts, rapid.Permutation(records).Draw(rt, "order")...)
		p := result.Cache.Prediction
		for _, e := range p.Each {
			if e.Predicted != e.Measured || e.Cause != "" {
				rt.Fatalf("row %d: %+v", e.Row, e)
			}
		}
		if p.Equal != len(d.rows) {
			rt.Fatalf("%+v", p)
		}
		// With the trace's answers, it is predicted as a run without real ones.
		plain := compute(rt, opts, traced...).Cache.Prediction
		if plain.TracePredicted.Set || p.TracePredicted.Set && p.TracePredicted.Value != plain.Predicted {
			rt.Fatalf("%+v, want %+v", p, plain)
		}
		if most := result.Cache.MaxHits; !most.Set || most.Value < p.Measured {
			rt.Fatalf("%d cached tokens, explained %v", p.Measured, most)
		}
	})
}

func TestTurns(t *testing.T) {
	tree := append(seq(1, 10), seq(100, 20)...)
	opts := liveOptions
	opts.LostTurns = 2
	dropped := carrying(0, 20, asked(1, 100, 150, 300, 96, tree...))
	dropped.Base.Answer.Dropped = 10
	cut := carrying(1, 40, asked(2, 200, 250, 310, 0, append(slices.Clone(tree), 200)...))
	compacted := carrying(2, 7, asked(3, 300, 350, 50, 0, 1, 2, 300, 301, 302))
	rewritten := carrying(3, 7, asked(4, 400, 450, 90, 0, 1, 400, 401, 402, 403, 404, 405, 406, 407))
	bare := carrying(4, 7, asked(5, 500, 550, 200, 0))
	bare.HashIDs = nil
	forgotten := asked(6, 600, 650, 300, 0, tree...) // its base is not recorded
	forgotten.SessionID = "s"
	forgotten.ID, forgotten.After = "f", []string{"first"}
	first := answering(25, asked(0, 0, 50, 100, 0, seq(1, 10)...))
	first.ID = "first"
	got := compute(t, opts, first, answering(40, dropped), answering(7, cut), answering(7, compacted), answering(7, rewritten), bare, forgotten).Turns
	want := measure.Turns{
		Relations: block.Relations{Extend: 2, Shortened: 1, Rewritten: 1, Unknown: 1}, Lost: 2,
		Live: 2, AnswerUnknown: 1, Answers: 5, Longer: 1, Dropped: 1, DroppedTokens: 10, Cut: 1, CutTokens: 31,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// With the trace's answers there is no record of what a prompt continues.
	var traced []replay.Record
	for _, rec := range []replay.Record{first, dropped, cut, compacted, rewritten, bare} {
		rec.Base = replay.Base{}
		traced = append(traced, rec)
	}
	want = measure.Turns{Relations: want.Relations}
	if diff := cmp.Diff(want, compute(t, measure.Options{BlockSize: 10}, traced...).Turns); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Records that contradict each other are reported, not followed forever.
func TestLiveAnswersInACycle(t *testing.T) {
	a := carrying(1, 5, answering(5, asked(0, 0, 50, 100, 0, seq(1, 10)...)))
	b := carrying(0, 5, answering(5, asked(1, 100, 150, 200, 96, seq(1, 20)...)))
	self := carrying(2, 5, answering(5, asked(2, 200, 250, 200, 96, seq(1, 20)...)))
	lost := carrying(77, 5, answering(5, asked(3, 300, 350, 200, 128, seq(1, 20)...)))
	r := compute(t, liveOptions, a, b, self, lost)
	if p := r.Cache.Prediction; p.Requests != 4 || len(p.Each) != 4 || r.Turns.AnswerUnknown != 3 {
		t.Errorf("%+v %+v", p, r.Turns)
	}
}

// Answers as text excuse a difference of a quarter of their tokens from the length that
// the prompt before allows, and cached tokens between the prompt before and the end of the
// answer; nothing else.
func TestAnswersAsText(t *testing.T) {
	for name, test := range map[string]struct {
		isl, before, input, cached int // before: the server's count of the first prompt
		off                        int
		cause                      measure.Cause
	}{
		"the generated tokens":             {300, 100, 300, 128, 0, ""},
		"a quarter of 60 tokens more":      {300, 100, 300 + 3 + 15, 128, 0, ""},
		"more than that":                   {300, 100, 300 + 3 + 16, 128, 1, ""},
		"a quarter less":                   {300, 100, 300 - 3 - 15, 128, 0, ""},
		"less than that":                   {300, 100, 300 - 3 - 16, 128, 1, ""},
		"other tokens at once":             {300, 100, 300, 96, 0, ""},
		"without the prompt before":        {300, 100, 300, 64, 0, measure.Evicted},
		"more than was generated":          {300, 100, 300, 192, 0, measure.Warm},
		"no room after a long prompt":      {150, 101, 151 + 1 + 12, 128, 0, ""},
		"more than room after it":          {150, 101, 151 + 1 + 13, 128, 1, ""},
		"a first prompt of another length": {300, 110, 300, 128, 1, ""},
	} {
		opts := liveOptions
		opts.TextAnswers = true
		r := compute(t, opts,
			counted(test.before, answering(60, asked(0, 0, 50, 100, 0, seq(1, 10)...))),
			counted(test.input, carrying(0, 60, asked(1, 100, 150, test.isl, test.cached, append(seq(1, 10), seq(100, 20)...)[:test.isl/10]...))))
		if got := r.Cache.Prediction.Each[1].Cause; r.Lengths.PromptsOff != test.off || got != test.cause || r.Lengths.AsText != 1 {
			t.Errorf("%s: cause %q, %+v", name, got, r.Lengths)
		}
	}
}
