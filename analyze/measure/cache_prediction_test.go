package measure_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/trace"
)

// asked is a prompt in blocks of 100 tokens with its send time, the time of its first token,
// and the tokens that the server had cached.
func asked(row int, sent, first float64, isl, cached int, ids ...uint64) replay.Record {
	rec := answered(sent, first)
	rec.Row, rec.InputLength, rec.HashIDs = row, isl, ids
	rec.Counts = replay.Counts{Input: trace.Some(isl), Output: trace.Some(1), Cached: trace.Some(cached)}
	return rec
}

// counted sets the server's count of prompt tokens.
func counted(tokens int, rec replay.Record) replay.Record {
	rec.Counts.Input = trace.Some(tokens)
	return rec
}

// inBlocksOf10 sets the server's block size to 10 tokens.
var inBlocksOf10 = measure.Options{
	BlockSize: 100, EachPrediction: true,
	Samples: measure.SampleSummary{Server: measure.ServerMetrics{BlockSize: 10}},
}

// Each case checks its last request: prompts that TestPredictionIsThatOfAllPairs does not draw.
func TestPredictedRequest(t *testing.T) {
	first := asked(0, 0, 50, 250, 0, 1, 2, 3) // blocks of 100, 100 and 50 tokens
	for _, test := range []struct {
		name              string
		before            []replay.Record
		last              replay.Record
		shared, predicted int
		cause             measure.Cause
	}{
		{"part of a block of the server", []replay.Record{asked(0, 0, 50, 255, 0, 1, 2, 3)}, asked(1, 100, 150, 300, 250, 1, 2, 3), 255, 250, ""},

		{"a prompt of another length, less", []replay.Record{first}, counted(260, asked(1, 100, 150, 250, 100, 1, 2, 6)), 200, 200, measure.Unknown},
		{"all that is shared, not whole blocks", []replay.Record{first}, asked(1, 100, 150, 250, 250, 1, 2, 3), 250, 240, ""},
		{"ids say nothing", []replay.Record{first}, asked(1, 100, 150, 250, 100), 0, 0, measure.Unknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := compute(t, inBlocksOf10, append(test.before, test.last)...).Cache.Prediction
			for _, e := range p.Each {
				if e.Row != test.last.Row {
					continue
				}
				want := measure.PredictedRequest{
					Row: test.last.Row, Target: test.last.Target, ISL: test.last.InputLength, Input: test.last.Counts.Input,
					Shared: test.shared, Predicted: test.predicted, Measured: test.last.Counts.Cached.Value, Cause: test.cause,
				}
				if diff := cmp.Diff(want, e); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				return
			}
			t.Errorf("it is not in %+v", p.Each)
		})
	}
}

func TestPrediction(t *testing.T) {
	failed := asked(9, 500, 600, 250, 200, 1, 2, 3)
	failed.Class = replay.Server
	got := compute(t, inBlocksOf10,
		asked(0, 0, 50, 250, 0, 1, 2, 3),
		asked(1, 100, 150, 250, 240, 1, 2, 3),
		asked(2, 200, 250, 250, 100, 1, 2, 6),
		asked(3, 300, 350, 250, 50, 1, 2, 7),
		asked(4, 400, 450, 250, 230, 1, 2, 8),
		failed,
	).Cache.Prediction
	got.Each = nil
	want := measure.CachePrediction{
		Requests: 5, BlockSize: 10, Targets: 1,
		Shared: 250 + 3*200, Predicted: 240 + 3*200, Measured: 240 + 100 + 50 + 230, Equal: 2,
		Causes: map[measure.Cause]measure.Difference{measure.NotShared: {Requests: 4, Tokens: 250 + 3*50}, measure.Evicted: {Requests: 2, Tokens: 100 + 150}, measure.Warm: {Requests: 1, Tokens: 30}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The counts of a server that does not report its block size bound it, but predictions
// are not rounded: they would agree with the counts by construction.
func TestUnknownBlockSize(t *testing.T) {
	opts := measure.Options{BlockSize: 100}
	p := compute(t, opts, asked(0, 0, 50, 250, 0, 1, 2, 3), asked(1, 100, 150, 250, 192, 1, 2, 6), asked(2, 200, 250, 250, 240, 1, 2, 6)).Cache.Prediction
	if p.BlockSize != 0 || p.MaxBlockSize != 48 || p.Predicted != 200+249 || p.Equal != 1 || p.Causes[measure.Unknown] != (measure.Difference{Requests: 2, Tokens: 8 + 9}) {
		t.Errorf("%+v", p)
	}
	if p := compute(t, opts, asked(0, 0, 50, 250, 0, 1, 2, 3), asked(1, 100, 150, 250, 0, 1, 2, 6)).Cache.Prediction; p.MaxBlockSize != 1 || p.Predicted != 200 {
		t.Errorf("where nothing was cached: %+v", p)
	}
}

// Engines omit a count of 0; a server without any counts is not compared.
func TestNothingCachedIsLeftOut(t *testing.T) {
	silent := asked(2, 200, 250, 250, 0, 1, 2, 6)
	silent.Counts.Cached = trace.Opt[int]{}
	p := compute(t, inBlocksOf10, asked(1, 100, 150, 250, 0, 1, 2, 3), silent).Cache.Prediction
	if d := p.Causes[measure.Evicted]; p.Requests != 2 || d.Tokens != 200 {
		t.Errorf("%+v", p)
	}
	if p := compute(t, inBlocksOf10, silent).Cache.Prediction; p.Requests != 0 {
		t.Errorf("%+v", p)
	}
	if p := compute(t, measure.Options{}, asked(1, 100, 150, 250, 0, 1, 2, 3)).Cache.Prediction; p.Requests != 0 {
		t.Errorf("of unknown block size: %+v", p)
	}
}

// The tokens of a chat template are before the prompt and behind it: as much
// more may be cached.
func TestTemplateMayBeCached(t *testing.T) {
	templated := func(row int, isl, cached int, ids ...uint64) replay.Record {
		return counted(isl+25, asked(row, float64(100*row), float64(100*row+50), isl, cached, ids...))
	}
	p := compute(t, inBlocksOf10,
		templated(0, 250, 0, 1, 2, 3), templated(1, 250, 200, 1, 2, 6), templated(2, 250, 220, 1, 2, 7), templated(3, 250, 190, 1, 2, 8), templated(4, 250, 230, 1, 2, 9)).Cache.Prediction
	want := map[measure.Cause]measure.Difference{measure.NotShared: {Requests: 5, Tokens: 250 + 4*50}, measure.Evicted: {Requests: 1, Tokens: 10}, measure.Warm: {Requests: 1, Tokens: 30}}
	if p.TemplateTokens != 25 || p.Equal != 3 || !cmp.Equal(want, p.Causes) {
		t.Errorf("%+v", p)
	}
}

// Prompts that were made shorter by a template of 25 tokens share less of their
// rows, and are of the length that is meant.
func TestPredictionOfShorterPrompts(t *testing.T) {
	opts := inBlocksOf10
	opts.CountedISL, opts.TemplateTokens = func(isl int) int { return isl }, 25
	p := compute(t, opts,
		asked(0, 0, 50, 250, 0, 1, 2, 3),
		asked(1, 100, 150, 250, 240, 1, 2, 3), // 225 tokens of the row, and what is before them of the template
		asked(2, 200, 250, 250, 220, 1, 2, 6),
		asked(3, 300, 350, 250, 190, 1, 2, 7),
		counted(26, asked(4, 400, 450, 20, 20, 1)),
		counted(240, asked(5, 500, 550, 250, 100, 1, 2, 8)),
	).Cache.Prediction
	want := map[measure.Cause]measure.Difference{measure.NotShared: {Requests: 4, Tokens: 225 + 3*25}, measure.Evicted: {Requests: 1, Tokens: 10}, measure.Unknown: {Requests: 1, Tokens: 100}}
	if p.TemplateTokens != 25 || p.Shared != 225+3*200+1 || p.Each[3].ISL != 250 || !cmp.Equal(want, p.Causes) {
		t.Errorf("%+v", p)
	}
}

// anyPrompts draws a run of prompts on a tree of prefixes, whose blocks are of
// 16 tokens, and whose server has blocks of 4.
func anyPrompts(t *rapid.T) []replay.Record {
	records := make([]replay.Record, rapid.IntRange(1, 25).Draw(t, "requests"))
	for i := range records {
		blocks := rapid.IntRange(1, 4).Draw(t, "blocks")
		ids, id := make([]uint64, blocks), uint64(0)
		for k := range ids {
			id = 3*id + rapid.Uint64Range(1, 3).Draw(t, "way")
			ids[k] = id
		}
		sent := float64(rapid.IntRange(0, 300).Draw(t, "sent"))
		first := sent + float64(rapid.IntRange(0, 100).Draw(t, "TTFT"))
		rec := asked(i, sent, first, 16*blocks-rapid.IntRange(0, 15).Draw(t, "less"), 0, ids...)
		rec.Target = rapid.IntRange(0, 2).Draw(t, "target")
		if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
			rec.Class = replay.Timeout
		}
		records[i] = rec
	}
	return records
}

// sharedTokens is how far two prompts begin alike.
func sharedTokens(a, b replay.Record) int {
	n := 0
	for n < len(a.HashIDs) && n < len(b.HashIDs) && a.HashIDs[n] == b.HashIDs[n] {
		n++
	}
	return min(n*16, a.InputLength, b.InputLength)
}

// The prediction equals a comparison of every prompt with every other.
func TestPredictionIsThatOfAllPairs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := anyPrompts(rt)
		opts := measure.Options{BlockSize: 16, EachPrediction: true, Samples: measure.SampleSummary{Server: measure.ServerMetrics{BlockSize: 4}}}
		for i := range records {
			records[i].Counts.Cached = trace.Some(rapid.IntRange(0, records[i].InputLength).Draw(rt, "cached"))
		}
		p := compute(rt, opts, rapid.Permutation(records).Draw(rt, "order")...).Cache.Prediction
		for _, e := range p.Each {
			q := records[e.Row]
			var sentBefore, computed, later int
			for j, r := range records {
				if shared := sharedTokens(q, r); j != e.Row {
					before := r.Sent.Value < q.Sent.Value || r.Sent.Value == q.Sent.Value && j < e.Row
					if before {
						sentBefore = max(sentBefore, shared)
					}
					if r.First.Value < q.Sent.Value {
						computed = max(computed, shared)
					}
					if r.Sent.Value <= q.First.Value || before {
						later = max(later, shared)
					}
				}
			}
			whole := func(tokens int) int { return max(0, min(tokens, q.InputLength-1)) / 4 * 4 }
			m, want := e.Measured, measure.Cause("")
			switch {
			case m < whole(computed):
				want = measure.Evicted
			case m < whole(sentBefore):
				want = measure.Unknown
			case m <= sentBefore:
			case m <= later:
				want = measure.Unknown
			default:
				want = measure.Warm
			}
			if e.Shared != sentBefore || e.Predicted != whole(sentBefore) || e.Cause != want {
				rt.Fatalf("%+v, want shared %d, %q", e, sentBefore, want)
			}
		}
	})
}
