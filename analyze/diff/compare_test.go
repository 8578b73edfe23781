package diff_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/trace"
)

func set(t *testing.T, texts ...string) (s settings.Settings) {
	t.Helper()
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		if err := s.Set(name, value, ""); err != nil {
			t.Fatal(name, err)
		}
	}
	return s
}

// ended returns run.json of a completed run.
func ended() runfile.Run {
	return runfile.Run{Outcome: runfile.Outcome{
		Ended: time.Unix(2, 0), Rows: 100, Schedule: "s",
		Trace: runfile.Source{Name: "t.jsonl", SHA256: "t", BlockSize: 512},
	}}
}

func read(t testing.TB, name string, info runfile.Run, records []replay.Record, opts measure.Options) *diff.Run {
	t.Helper()
	r, err := diff.Read(diff.Source{Name: name, Run: info, Records: each(records), Measure: opts})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// streamed returns records of multi-token answers with gaps of about 10 ms after
// the TTFT.
func streamed(seed uint64, n int) (records []replay.Record) {
	random := rand.New(rand.NewPCG(seed, 4))
	for i := range n {
		rec := answered(i, 50+100*random.Float64())
		rec.InputLength = 500 + 300*(i%40)
		rec.Counts.Input = trace.Some(rec.InputLength)
		rec.Counts.Cached = trace.Some(random.IntN(500))
		at := rec.First.Value
		for range 1 + random.IntN(20) {
			gap := time.Duration(1e7 + random.Int64N(2e6))
			rec.Gaps = append(rec.Gaps, gap)
			at += gap
		}
		rec.Chunks = len(rec.Gaps) + 1
		rec.OutputLength = 21 // the most
		rec.Counts.Output = trace.Some(rec.Chunks)
		rec.Last, rec.Done = trace.Some(at), at
		records = append(records, rec)
	}
	return records
}

// later returns the same records with every answer delayed by the same time.
func later(records []replay.Record, by time.Duration) []replay.Record {
	records = slices.Clone(records)
	for i := range records {
		r := &records[i]
		r.First.Value += by
		r.Last.Value += by
		r.Done += by
	}
	return records
}

func find(t testing.TB, c *diff.Comparison, name string) diff.Difference {
	t.Helper()
	d, ok := c.Find(name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return d
}

// A constant difference is measured exactly, with an interval of width 0.
func TestExactDifference(t *testing.T) {
	records := streamed(1, 400)
	a, b := read(t, "a", ended(), records, measure.Options{}), read(t, "b", ended(), later(records, 7*time.Millisecond), measure.Options{})
	c := diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{Resamples: 100})
	if !c.Paired || c.Pairs != 400 || c.OnlyA+c.OnlyB != 0 || len(c.Objections) != 0 || len(c.Changes) != 0 {
		t.Errorf("%+v", c)
	}
	near := func(x, want float64) bool { return math.Abs(x-want) < 1e-9 }
	for name, want := range map[string]float64{"mean_ttft_ms": 7, "median_ttft_ms": 7, "mean_e2el_ms": 7, "mean_tpot_ms": 0, "p99_itl_ms": 0} {
		d := find(t, c, name)
		if in := d.Interval.Value; !d.Interval.Set && name != "p99_ttft_ms" || !near(d.Difference.Value, want) || !near(in.Low, want) || !near(in.High, want) {
			t.Errorf("%s: %+v", name, d)
		}
		if better := map[float64]int{7: -1, 0: 0}[want]; d.Better() != better {
			t.Errorf("%s is better by %d", name, d.Better())
		}
	}
	for _, r := range c.Requests {
		want := map[measure.Latency]float64{measure.TTFT: 7, measure.TPOT: 0, measure.E2EL: 7}[r.Latency]
		if !near(r.Mean, want) || !near(r.Median, want) || !near(r.MeanInterval.Value.Low, want) || want > 0 && (r.Higher != 400 || r.Lower != 0) {
			t.Errorf("%+v", r)
		}
	}
}

// The values of single runs match their reports; the value of several runs is
// computed from all their records.
func TestValues(t *testing.T) {
	one, other := streamed(1, 300), streamed(2, 300)
	a, b := read(t, "a", ended(), one, measure.Options{}), read(t, "b", ended(), other, measure.Options{})
	c := diff.Of([]*diff.Run{a}, []*diff.Run{a, b}, diff.Options{Resamples: 20})
	result, err := measure.Compute(each(one), measure.Options{})
	if err != nil {
		t.Fatal(err)
	}
	both, err := measure.Compute(each(append(slices.Clone(one), other...)), measure.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]func(r *measure.Result) float64{
		"p99_ttft_ms":    func(r *measure.Result) float64 { return r.TTFT.Quantile(0.99) },
		"median_itl_ms":  func(r *measure.Result) float64 { return r.ITL.Quantile(0.5) },
		"mean_tpot_ms":   func(r *measure.Result) float64 { return r.TPOT.Mean },
		"mean_e2el_ms":   func(r *measure.Result) float64 { return r.E2EL.Mean },
		"cached_share":   func(r *measure.Result) float64 { return float64(r.Cached.Value) / float64(r.Input) },
		"mean_itl_ms":    func(r *measure.Result) float64 { return r.ITL.Mean },
		"median_ttft_ms": func(r *measure.Result) float64 { return r.TTFT.Quantile(0.5) },
	} {
		d := find(t, c, name)
		if want := of(result); d.A.Value != want {
			t.Errorf("%s is %v, the run's %v", name, d.A.Value, want)
		}
		if want := of(both); math.Abs(d.B.Value-want) > 1e-9*want {
			t.Errorf("%s of two runs is %v, of their records %v", name, d.B.Value, want)
		}
	}
}

// The rates over all stretches match the run's rates, with and without a window.
func TestRatesOfStretches(t *testing.T) {
	records := streamed(3, 400)
	records[5].Class, records[6].Class = replay.Timeout, replay.Server
	for _, window := range []measure.Span{{}, {From: 10 * time.Second, To: 30 * time.Second}} {
		opts := measure.Options{Window: window, Objectives: []measure.Objective{{Latency: measure.TTFT, LimitMS: 100}, {Latency: measure.TTST, LimitMS: 11}}}
		asked := append(measure.MetricsToCompare(measure.CompareAlways), metrics(t, "goodput")...)
		asked = append(asked, metrics(t, "mean_ttst_ms")...)
		a := read(t, "a", ended(), records, opts)
		// For two identical runs, the value from the records equals that of one
		// run.
		c := diff.Of([]*diff.Run{a}, []*diff.Run{a, a}, diff.Options{Metrics: asked, Resamples: 20})
		for _, name := range []string{"request_throughput", "output_throughput", "total_token_throughput", "failed_share", "request_goodput"} {
			d := find(t, c, name)
			if !d.A.Set || math.Abs(d.B.Value-d.A.Value) > 0.002*d.A.Value {
				t.Errorf("window %v: %s is %v, its stretches give %v", window, name, d.A, d.B)
			}
		}
		if good, all := find(t, c, "request_goodput").A.Value, find(t, c, "request_throughput").A.Value; !(0.1*all < good && good < 0.9*all) {
			t.Errorf("of %v requests a second %v are good: the test does not tell", all, good)
		}
		for _, name := range []string{"mean_ttft_ms", "mean_ttst_ms", "mean_itl_ms", "mean_tpot_ms", "cached_share"} {
			if d := find(t, c, name); math.Abs(d.B.Value-d.A.Value) > 1e-9*d.A.Value {
				t.Errorf("window %v: %s is %v, the kept requests give %v", window, name, d.A.Value, d.B.Value)
			}
		}
	}
}

// Neither the order in which requests ended nor the number of CPU cores changes a
// result.
func TestSameFigures(t *testing.T) {
	one, other := streamed(4, 300), later(streamed(5, 300), time.Millisecond)
	compared := func(a, b []replay.Record) *diff.Comparison {
		return diff.Of([]*diff.Run{read(t, "a", ended(), a, measure.Options{})}, []*diff.Run{read(t, "b", ended(), b, measure.Options{})}, diff.Options{Seed: 9, Resamples: 100})
	}
	figures := func(c *diff.Comparison) []any {
		var all []any
		for _, d := range c.Differences {
			d.Metric = measure.Metric{Key: d.Metric.Key}
			all = append(all, d)
		}
		return append(all, c.Requests)
	}
	want := figures(compared(one, other))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	shuffled := slices.Clone(one)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	slices.Reverse(other)
	if got := figures(compared(shuffled, other)); !reflect.DeepEqual(got, want) {
		t.Error(cmp.Diff(want, got, cmp.AllowUnexported(measure.Metric{}, measure.Statistic{})))
	}
}

func TestTwiceInTheRecord(t *testing.T) {
	records := streamed(8, 5)
	records[4].Row = 2
	_, err := diff.Read(diff.Source{Records: each(records)})
	if err == nil || !strings.Contains(err.Error(), "row 3 is in the record twice") {
		t.Error(err)
	}
}

// Requests that completed on only one side are counted but not paired.
func TestOneSided(t *testing.T) {
	one, other := streamed(9, 100), streamed(9, 100)
	one[1].Class, other[2].Class, other[3].Class = replay.Timeout, replay.Timeout, replay.Timeout
	one[4].Class, other[4].Class = replay.Timeout, replay.Timeout
	c := diff.Of([]*diff.Run{read(t, "a", ended(), one, measure.Options{})}, []*diff.Run{read(t, "b", ended(), other, measure.Options{})}, diff.Options{Resamples: 20})
	if c.Pairs != 96 || c.OnlyA != 2 || c.OnlyB != 1 {
		t.Errorf("%d pairs, %d in A alone, %d in B", c.Pairs, c.OnlyA, c.OnlyB)
	}
	if d := find(t, c, "failed_share"); d.A.Value != 0.02 || d.B.Value != 0.03 || d.Interval.Set {
		t.Errorf("%+v", d)
	}
}

// A stretch covers the same rows on both sides, even if one side has few of them.
func TestStretchesAreOfTheSameRows(t *testing.T) {
	a, b := read(t, "a", ended(), streamed(1, 800), measure.Options{}), read(t, "b", ended(), streamed(2, 800)[400:], measure.Options{})
	c := diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{Resamples: 20})
	if d := find(t, c, "mean_ttft_ms"); !c.Paired || d.Interval.Set {
		t.Errorf("half of the rows tell of all stretches: %+v", d)
	}
}

func TestChanges(t *testing.T) {
	base := ended()
	base.Notes, base.Settings = []string{"the same", "only here"}, set(t, "routing=prefix", "out=a")
	other := ended()
	other.Notes, other.Settings = []string{"the same"}, set(t, "routing=random", "out=b", "engines=2", "url=http://b", "max-concurrency=8", "salt=x")
	other.Target.URL = "http://b"
	other.Started, other.Sent, other.Prompts, other.Command = time.Unix(1, 0), 5, "p", []string{"other"} // differences that are not settings
	records := streamed(10, 3)
	second := other
	second.Settings.Salt = "y"
	c := diff.Of([]*diff.Run{read(t, "a", base, records, measure.Options{})},
		[]*diff.Run{read(t, "b1", other, records, measure.Options{}), read(t, "b2", second, records, measure.Options{})}, diff.Options{Resamples: 20})
	want := []diff.Change{
		{"routing", []string{"prefix"}, []string{"random"}},
		{"notes", []string{"only here"}, nil},
		{"url", nil, []string{"http://b"}},
		{"salt", nil, []string{"x", "y"}},
		{"max-concurrency", nil, []string{"8"}},
		{"engines", nil, []string{"2"}},
	}
	if diff := cmp.Diff(want, c.Changes); diff != "" {
		t.Error(diff)
	}
}

// The embedded endpoint listens on a random free port, which is not a setting.
func TestChangesOfTheEmbeddedEndpoint(t *testing.T) {
	a, b := ended(), ended()
	a.Target, b.Target = runfile.Target{URL: "http://127.0.0.1:1", Simulated: true}, runfile.Target{URL: "http://127.0.0.1:2", Simulated: true}
	a.Settings = set(t, "salt=x")
	records := streamed(10, 3)
	c := diff.Of([]*diff.Run{read(t, "a", a, records, measure.Options{})}, []*diff.Run{read(t, "b", b, records, measure.Options{})}, diff.Options{Resamples: 20})
	if diff := cmp.Diff([]diff.Change{{"salt", []string{"x"}, nil}}, c.Changes); diff != "" {
		t.Error(diff)
	}
}

// Empty and very small runs cause no panic and yield no interval.
func TestLittle(t *testing.T) {
	for _, n := range []int{0, 1, 2, 19} {
		a, b := read(t, "a", ended(), streamed(11, n), measure.Options{}), read(t, "b", ended(), streamed(12, n), measure.Options{})
		c := diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{Resamples: 20})
		for _, d := range c.Differences {
			if d.Interval.Set && strings.HasSuffix(d.Metric.Key, "_ms") && !strings.Contains(d.Metric.Key, "itl") {
				t.Errorf("%d requests: %+v", n, d)
			}
		}
	}
}

// TTFVT is compared where an answer of either side began with reasoning.
func TestReasoningIsCompared(t *testing.T) {
	reasoned := streamed(1, 40)
	for i := range reasoned {
		reasoned[i].FirstVisible = reasoned[i].Last
	}
	a, b := read(t, "a", ended(), streamed(1, 40), measure.Options{}), read(t, "b", ended(), reasoned, measure.Options{})
	for _, sides := range [][2]*diff.Run{{a, a}, {a, b}, {b, a}} {
		c := diff.Of(sides[:1], sides[1:], diff.Options{Resamples: 20})
		compared := slices.ContainsFunc(c.Differences, func(d diff.Difference) bool { return d.Metric.Key == "p99_ttfvt_ms" })
		if compared != slices.Contains(sides[:], b) {
			t.Errorf("TTFVT is compared: %v", compared)
		}
	}
	// TTFVT of b is E2EL of both.
	d := find(t, diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{Resamples: 20}), "mean_ttfvt_ms")
	if want := a.Result.E2EL.Mean - a.Result.TTFT.Mean; math.Abs(d.Difference.Value-want) > 1e-9 || !d.Interval.Set || !d.Significant() {
		t.Errorf("TTFVT: %+v, want a difference of %v", d, want)
	}
}
