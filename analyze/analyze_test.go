package analyze_test

import (
	"errors"
	"math"
	"testing"

	"moontide/analyze"
	"moontide/trace"
	"moontide/trace/block"
)

func analyzed(t *testing.T, opts analyze.Options, rows ...trace.Request) *analyze.Analysis {
	t.Helper()
	a, err := analyze.Trace(trace.FromSlice(rows), opts)
	if err != nil {
		t.Fatalf("Trace: %v", err)
	}
	return a
}

// prompt is a row with ids; without any the list is empty, not absent.
func prompt(isl int, ids ...uint64) trace.Request {
	return trace.Request{InputLength: isl, HashIDs: append([]uint64{}, ids...)}
}

func at(ms float64) trace.Request { return trace.Request{Timestamp: trace.Some(ms)} }

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-12*max(1, math.Abs(a), math.Abs(b))
}

func sameOpt(a, b trace.Opt[float64]) bool { return a.Set == b.Set && near(a.Value, b.Value) }

func sameContext(a, b analyze.Context) bool {
	return sameOpt(a.Mean, b.Mean) && sameOpt(a.UniqueMean, b.UniqueMean) && sameOpt(a.SharedRatio, b.SharedRatio)
}

// context makes a Context with all its parts.
func context(mean, unique, ratio float64) analyze.Context {
	return analyze.Context{Mean: trace.Some(mean), UniqueMean: trace.Some(unique), SharedRatio: trace.Some(ratio)}
}

type prefixWant struct {
	requests, total, unique int
	hitBlocks, hitTokens    int
	block, token, mean      float64
	noHit, allHit           int
	observed                analyze.Context
}

func checkPrefix(t *testing.T, a *analyze.Analysis, want prefixWant) {
	t.Helper()
	p := a.Prefix
	if p == nil {
		t.Fatal("Prefix is absent")
	}
	got := []int{p.Requests, p.TotalBlocks, p.UniqueBlocks, p.HitBlocks, p.HitTokens, p.NoHit, p.AllHit}
	ints := []int{want.requests, want.total, want.unique, want.hitBlocks, want.hitTokens, want.noHit, want.allHit}
	for i := range got {
		if got[i] != ints[i] {
			t.Errorf("requests, total, unique, hit blocks, hit tokens, no hit, all hit = %v, want %v", got, ints)
			break
		}
	}
	r := p.Infinite
	if !near(r.Block, want.block) || !sameOpt(r.Token, trace.Some(want.token)) || !near(r.MeanRequest, want.mean) {
		t.Errorf("block, token, mean request hit rate = %v %v %v, want %v %v %v",
			r.Block, r.Token, r.MeanRequest, want.block, want.token, want.mean)
	}
	if !sameContext(a.Observed, want.observed) {
		t.Errorf("observed context %+v, want %+v", a.Observed, want.observed)
	}
}

func TestEmptyPromptsHaveNoTokenRates(t *testing.T) {
	a := analyzed(t, analyze.Options{BlockSize: 10}, prompt(0, 1), prompt(0, 1))
	if a.Prefix.Infinite.Token.Set || a.Observed.SharedRatio.Set {
		t.Errorf("token hit rate %v, shared ratio %v of no tokens", a.Prefix.Infinite.Token, a.Observed.SharedRatio)
	}
	if a.Prefix.Infinite.Block != 0.5 {
		t.Errorf("block hit rate %v, want 0.5", a.Prefix.Infinite.Block)
	}
}

func TestBlockSize(t *testing.T) {
	// ceil(33/B) is 3 and ceil(41/B) is 4 for B = 11, 12 or 13 only, and
	// ceil(12/B) is 2 for 11 of these.
	rows := []trace.Request{prompt(33, 1, 2, 3), prompt(41, 1, 2, 4, 5), prompt(12, 8, 9)}
	a := analyzed(t, analyze.Options{}, rows...)
	if got := a.Prefix.BlockSize; got.Tokens != 11 || got.How != block.Detected {
		t.Errorf("block size %+v, want 11, detected", got)
	}
	if a.Prefix.HitTokens != 22 {
		t.Errorf("%d hit tokens, want 22", a.Prefix.HitTokens)
	}
	a = analyzed(t, analyze.Options{BlockSize: 4}, rows...)
	if got := a.Prefix.BlockSize; got.Tokens != 4 || got.How != block.Given || a.Prefix.HitTokens != 8 {
		t.Errorf("block size %+v and %d hit tokens, want 4, given, and 8", got, a.Prefix.HitTokens)
	}
}

func TestDeclaredContext(t *testing.T) {
	declares := func(isl, shared, unique int) trace.Request {
		return trace.Request{InputLength: isl, ContextLen: trace.Some(shared), UniquePromptLen: trace.Some(unique)}
	}
	onlyShared := trace.Request{InputLength: 50, ContextLen: trace.Some(40)}
	onlyUnique := trace.Request{InputLength: 50, UniquePromptLen: trace.Some(40)}
	silent := trace.Request{InputLength: 1000}
	tests := []struct {
		name string
		rows []trace.Request
		want analyze.Context
	}{
		{"nothing declared", []trace.Request{silent}, analyze.Context{}},
		{"everything declared", []trace.Request{declares(100, 60, 40), declares(300, 100, 200)}, context(80, 120, 0.4)},
		{"a true 0", []trace.Request{declares(100, 0, 100)}, context(0, 100, 0)},
		{"silent rows are left out", []trace.Request{declares(100, 60, 40), silent}, context(60, 40, 0.6)},
		{"one part only", []trace.Request{declares(150, 60, 90), onlyShared}, context(50, 90, 0.5)},
		{"only unique", []trace.Request{onlyUnique}, analyze.Context{UniqueMean: trace.Some(40.0)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := analyzed(t, analyze.Options{}, test.rows...).Declared; !sameContext(got, test.want) {
				t.Errorf("declared context %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestArrivals(t *testing.T) {
	none := trace.Opt[float64]{}
	tests := []struct {
		name string
		rows []trace.Request
		want analyze.Arrivals
	}{
		{"one", []trace.Request{at(500)},
			analyze.Arrivals{Requests: 1, First: 500, Last: 500, DistinctTimestamps: 1, MostAtOnce: 1}},
		{"two", []trace.Request{at(500), at(1500)},
			analyze.Arrivals{Requests: 2, First: 500, Last: 1500, Rate: trace.Some(2.0), DistinctTimestamps: 2, MostAtOnce: 1}},
		{"all at once", []trace.Request{at(7), at(7), at(7)},
			analyze.Arrivals{Requests: 3, First: 7, Last: 7, Rate: none, CV: none, DistinctTimestamps: 1, MostAtOnce: 3}},
		{"a clock", []trace.Request{at(0), at(250), at(500), at(750)},
			analyze.Arrivals{Requests: 4, Last: 750, Rate: trace.Some(4 / 0.75), CV: trace.Some(0.0), DistinctTimestamps: 4, MostAtOnce: 1}},
		// Steps 0 0 2000 2000 0: mean 800, deviation sqrt(1.6e6 - 0.64e6).
		{"bursts", []trace.Request{at(0), at(0), at(0), at(2000), at(4000), at(4000)},
			analyze.Arrivals{Requests: 6, Last: 4000, Rate: trace.Some(1.5), CV: trace.Some(math.Sqrt(0.96e6) / 800), DistinctTimestamps: 3, MostAtOnce: 3}},
		{"out of order", []trace.Request{at(1000), at(100), at(400), at(100.5)},
			analyze.Arrivals{Requests: 4, First: 100, Last: 1000, Rate: trace.Some(4 / 0.9), CV: trace.Some(math.Sqrt(449700.5/3-90000) / 300), DistinctTimestamps: 4, MostAtOnce: 1}},
		{"rows without a time", []trace.Request{at(0), {Delay: trace.Some(5.0)}, at(2000)},
			analyze.Arrivals{Requests: 2, Last: 2000, Rate: trace.Some(1.0), DistinctTimestamps: 2, MostAtOnce: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := *analyzed(t, analyze.Options{}, test.rows...).Arrivals
			if !sameOpt(got.Rate, test.want.Rate) || !sameOpt(got.CV, test.want.CV) {
				t.Errorf("rate %v and CV %v, want %v and %v", got.Rate, got.CV, test.want.Rate, test.want.CV)
			}
			counts := func(a analyze.Arrivals) [5]float64 {
				return [5]float64{float64(a.Requests), a.First, a.Last, float64(a.DistinctTimestamps), float64(a.MostAtOnce)}
			}
			if counts(got) != counts(test.want) {
				t.Errorf("requests, first, last, distinct, most at once: %v, want %v", counts(got), counts(test.want))
			}
		})
	}
	if a := analyzed(t, analyze.Options{}, trace.Request{}); a.Arrivals != nil {
		t.Errorf("arrivals %+v of a trace without timestamps", a.Arrivals)
	}
}

func TestErrors(t *testing.T) {
	if _, err := analyze.Trace(trace.FromSlice(nil), analyze.Options{}); !errors.Is(err, analyze.ErrEmpty) || err.Error() != "no requests" {
		t.Errorf("empty trace: %v", err)
	}
	broken := errors.New("line 2 is broken")
	stream := func(yield func(trace.Request, error) bool) {
		if yield(trace.Request{}, nil) {
			yield(trace.Request{}, broken)
		}
	}
	if a, err := analyze.Trace(stream, analyze.Options{}); err != broken || a != nil {
		t.Errorf("broken stream: %v, %v", a, err)
	}
	for _, size := range []int{-1, trace.MaxLength + 1} {
		if _, err := analyze.Trace(trace.FromSlice([]trace.Request{{}}), analyze.Options{BlockSize: size}); err == nil {
			t.Errorf("block size %d: no error", size)
		}
	}
}
