package measure_test

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// each streams values as a run's folder does.
func each[T any](values []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range values {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func at(ms float64) time.Duration { return time.Duration(math.Round(ms * float64(time.Millisecond))) }

func instant(ms float64) replay.Instant { return trace.Some(at(ms)) }

// answered is a request that was due, ready and sent at the same time, with token
// chunks at the given times; it was done with the last.
func answered(sent float64, chunks ...float64) replay.Record {
	last := chunks[len(chunks)-1]
	rec := replay.Record{
		Request: trace.Request{OutputLength: len(chunks)},
		Due:     at(sent), Ready: at(sent), Sent: instant(sent),
		First: instant(chunks[0]), Last: instant(last), Done: at(last), Chunks: len(chunks),
	}
	for i := range chunks[1:] {
		rec.Gaps = append(rec.Gaps, at(chunks[i+1])-at(chunks[i]))
	}
	return rec
}

func compute(t interface {
	Helper()
	Fatal(...any)
}, opts measure.Options, records ...replay.Record) *measure.Result {
	t.Helper()
	r, err := measure.Compute(each(records), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mixed is a run of three answers, a timeout and a failed dial. All that is
// said of it below is worked out by hand; instants are in milliseconds.
//
//	row  due ready sent first last done  chunks at
//	0      0     0    1   101  151  152  101 121 151
//	1    100   150  153   253  253  260  253
//	2    200   200  260   300  340  400  300 340
//	3    300   300  302   350  360 1302  350 360, then a timeout
//	4    500   500    -     -    -  501  no connection
func mixed() []replay.Record {
	return []replay.Record{
		{
			Request: trace.Request{InputLength: 1000, OutputLength: 6, HashIDs: []uint64{1, 2}},
			Row:     0, Due: at(0), Ready: at(0), Sent: instant(1), First: instant(101), Last: instant(151), Done: at(152),
			Chunks: 3, Gaps: []time.Duration{at(20), at(30)},
			Counts: replay.Counts{Input: trace.Some(1000), Output: trace.Some(5), Cached: trace.Some(512)},
		}, {
			Request: trace.Request{InputLength: 1000, OutputLength: 2, HashIDs: []uint64{1, 3}},
			Row:     1, Due: at(100), Ready: at(150), Sent: instant(153), First: instant(253), Last: instant(253), Done: at(260),
			Chunks: 1,
			Counts: replay.Counts{Input: trace.Some(1011), Output: trace.Some(1)},
		}, {
			Request: trace.Request{InputLength: 600, OutputLength: 7, HashIDs: []uint64{1, 2}},
			Row:     2, Due: at(200), Ready: at(200), Sent: instant(260), First: instant(300), Last: instant(340), Done: at(400),
			Chunks: 2, Gaps: []time.Duration{at(40)},
		}, {
			Request: trace.Request{InputLength: 1000, OutputLength: 9, HashIDs: []uint64{1, 3}},
			Row:     3, Due: at(300), Ready: at(300), Sent: instant(302), First: instant(350), Last: instant(360), Done: at(1302),
			Chunks: 2, Gaps: []time.Duration{at(10)},
			Counts: replay.Counts{Input: trace.Some(5000), Output: trace.Some(4000), Cached: trace.Some(900)},
			Class:  replay.Timeout, Error: "no end after 1s",
		}, {
			Request: trace.Request{InputLength: 1000, OutputLength: 9},
			Row:     4, Due: at(500), Ready: at(500), Done: at(501),
			Class: replay.Connect, Error: "refused",
		},
	}
}

// spread are the moments of a distribution that are easy to work out by hand.
type spread struct {
	Count                  int
	Sum, Min, Median, Mean float64
}

func spreadOf(d stats.Sample) spread {
	return spread{d.Count, d.Sum, d.Min, d.Quantile(0.5), d.Mean}
}

var close = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) })

func TestLatencies(t *testing.T) {
	r := compute(t, measure.Options{}, mixed()...)
	for _, test := range []struct {
		name string
		got  stats.Sample
		want spread
	}{
		// 101-1, 253-153, 300-260; rows 3 and 4 failed.
		{"TTFT", r.TTFT, spread{3, 240, 40, 100, 80}},
		// (151-101)/(5-1) and (340-300)/(2-1); row 1 has one token, so no TPOT.
		{"TPOT", r.TPOT, spread{2, 52.5, 12.5, 26.25, 26.25}},
		// 20, 30 of row 0 and 40 of row 2.
		{"ITL", r.ITL, spread{3, 90, 20, 30, 30}},
		// 151-1, 253-153, 340-260: to the last token, not to the end.
		{"E2EL", r.E2EL, spread{3, 330, 80, 100, 110}},
		// 101-0, 253-100, 300-200.
		{"TTFT from schedule", r.TTFTFromSchedule, spread{3, 354, 100, 101, 118}},
		// 151-0, 253-100, 340-200.
		{"E2EL from schedule", r.E2ELFromSchedule, spread{3, 444, 140, 151, 148}},
		// 1-0, 153-150, 260-200, 302-300: of all that were sent.
		{"client lag", r.ClientLag, spread{4, 66, 1, 2.5, 16.5}},
		// 0, 150-100, 0, 0.
		{"queue time", r.QueueTime, spread{4, 50, 0, 0, 12.5}},
		// 1-0, 153-100, 260-200, 302-300.
		{"schedule lag", r.ScheduleLag, spread{4, 116, 1, 27.5, 29}},
	} {
		if diff := cmp.Diff(test.want, spreadOf(test.got), close); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}

func TestCountsAndThroughputs(t *testing.T) {
	got := compute(t, measure.Options{BlockSize: 512}, mixed()...)
	want := &measure.Result{
		Completed: 3, Ended: 3, Failed: 2, Records: 5,
		Errors:   map[replay.Class]int{replay.Timeout: 1, replay.Connect: 1},
		Examples: map[replay.Class]string{replay.Timeout: "no end after 1s", replay.Connect: "refused"},
		From:     at(1), Duration: at(1301), // 1 .. 1302
		Input: 2611, InputEstimates: 1, // 1000 + 1011 + 600 of the trace
		Output: 8, OutputEstimates: 1, // 5 + 1 + 2 chunks
		Cached:         trace.Some(512), // the timeout's 900 are not counted
		RequestRate:    trace.Some(3 / 1.301),
		OutputRate:     trace.Some(8 / 1.301),
		TotalRate:      trace.Some((2611 + 8) / 1.301),
		PeakOutputRate: 8, // all within 101 .. 340
		PeakEventRate:  6, PeakSendRate: 4,
		// Rows 2 and 3 from 302 on; row 2 began as row 1 ended.
		PeakConcurrency: 2,
		OfferedRate:     trace.Some(5 / 0.5),   // 0 .. 500
		AchievedRate:    trace.Some(4 / 0.301), // 1 .. 302
		Queued:          1, SentRate: trace.Some(4 / 0.301), SendingLate: 1,
		Lengths: measure.Lengths{
			Prompts: 2, PromptsOff: 1, // 1011 is 1.1 % off
			Answers: 2, AnswersShorter: 2, // 1 of 2, 5 of 6
		},
		// Block 1: 512 in each of three, and the timeout may have been first.
		// Block 2: 488 or 88, the smaller one was computed. Block 3: 488, again after
		// the timeout. 1536 + 488 + 488.
		Cache:      measure.Cache{MaxHits: trace.Some(2512), Requests: 1},
		Thresholds: measure.DefaultThresholds,
	}
	// These have tests of their own.
	noDistributions := cmp.Comparer(func(_, _ stats.Sample) bool { return true })
	noVerdict := cmp.Comparer(func(_, _ measure.Verdict) bool { return true })
	noPrediction := cmp.Comparer(func(_, _ measure.CachePrediction) bool { return true })
	if diff := cmp.Diff(want, got, noDistributions, noVerdict, noPrediction, close); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Requests that were never sent, or never answered, are in no latency.
func TestRecordsWithoutInstants(t *testing.T) {
	whole := answered(0, 100, 200)
	for name, change := range map[string]func(*replay.Record){
		"sent":  func(r *replay.Record) { r.Sent = replay.Instant{} },
		"first": func(r *replay.Record) { r.First = replay.Instant{} },
		"last":  func(r *replay.Record) { r.Last = replay.Instant{} },
	} {
		t.Run("no "+name, func(t *testing.T) {
			part := whole
			change(&part)
			r := compute(t, measure.Options{}, part)
			for _, d := range []stats.Sample{r.TTFT, r.TPOT, r.ITL, r.E2EL, r.TTFTFromSchedule, r.E2ELFromSchedule} {
				if d.Count != 0 {
					t.Errorf("%d values", d.Count)
				}
			}
			if r.Completed != 1 || r.PeakOutputRate != 0 {
				t.Errorf("completed %d, peak %v", r.Completed, r.PeakOutputRate)
			}
			if sent := name != "sent"; sent != (r.ClientLag.Count == 1) || sent != r.RequestRate.Set {
				t.Errorf("%d client lags, request rate %v", r.ClientLag.Count, r.RequestRate)
			}
		})
	}
}

func TestNoRecords(t *testing.T) {
	r, err := measure.Compute(each[replay.Record](nil), measure.Options{})
	if err != nil || r.Completed+r.Failed != 0 || r.Verdict.Level != measure.Invalid || r.RequestRate.Set {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRecordsError(t *testing.T) {
	broken := errors.New("broken")
	records := func(yield func(replay.Record, error) bool) {
		_ = yield(answered(0, 1), nil) && yield(replay.Record{}, broken)
	}
	if r, err := measure.Compute(records, measure.Options{}); err != broken || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

func TestOnlyFailed(t *testing.T) {
	failed := func(class replay.Class, message string) replay.Record {
		rec := answered(0, 100, 200)
		rec.Class, rec.Error = class, message
		return rec
	}
	r := compute(t, measure.Options{},
		failed(replay.Server, "b"), failed(replay.Server, ""), failed(replay.Server, "a"), failed(replay.Empty, ""), failed(replay.Canceled, "c"))
	if diff := cmp.Diff(map[replay.Class]int{replay.Server: 3, replay.Empty: 1, replay.Canceled: 1}, r.Errors); diff != "" {
		t.Error(diff)
	}
	if r.Examples[replay.Server] != "a" || r.Examples[replay.Canceled] != "c" {
		t.Errorf("examples %v", r.Examples)
	}
	if r.Completed != 0 || r.Failed != 5 || r.TTFT.Count+r.TPOT.Count+r.ITL.Count+r.E2EL.Count != 0 || r.PeakOutputRate != 0 {
		t.Errorf("%+v", r)
	}
	// 0 of 5 succeeded in 0.2 s: that is a rate of 0, and it was measured.
	if r.RequestRate != trace.Some(0.0) || r.Cached.Set || r.Verdict.Level != measure.Invalid {
		t.Errorf("request rate %v, cached %v, %v", r.RequestRate, r.Cached, r.Verdict.Level)
	}
}

// A run that took no time has no rates.
func TestNothingSent(t *testing.T) {
	r := compute(t, measure.Options{}, replay.Record{Class: replay.Connect, Done: at(5)}, replay.Record{Class: replay.Connect, Done: at(9)})
	if r.Duration != 0 || r.RequestRate.Set || r.OutputRate.Set || r.TotalRate.Set || r.OfferedRate.Set || r.AchievedRate.Set {
		t.Errorf("duration %v, rates %v %v %v, offered %v, achieved %v", r.Duration, r.RequestRate, r.OutputRate, r.TotalRate, r.OfferedRate, r.AchievedRate)
	}
	if r.PeakConcurrency != 0 || r.ClientLag.Count != 0 {
		t.Errorf("peak %d, %d lags", r.PeakConcurrency, r.ClientLag.Count)
	}
}

// A chat template is not counted as a prompt mismatch.
func TestLengthsWithATemplate(t *testing.T) {
	opts := measure.Options{CountedISL: func(isl int) int { return isl + 50 }}
	for input, off := range map[int]int{150: 0, 151: 0, 152: 1, 148: 1, 100: 1} {
		rec := answered(0, 100)
		rec.InputLength, rec.Counts.Input = 100, trace.Some(input)
		r := compute(t, opts, rec)
		said := fmt.Sprintf("%d of 1 prompts differ from the trace's ISL plus 50 template tokens by more than 1 %%", off)
		if r.Lengths.PromptsOff != off || !strings.Contains(fmt.Sprint(r.Verdict.Evidence), said) {
			t.Errorf("%d tokens: %d off, %v", input, r.Lengths.PromptsOff, r.Verdict)
		}
	}
}

func TestLengths(t *testing.T) {
	for _, test := range []struct {
		name                 string
		isl, osl, in, out    int
		off, shorter, longer int
	}{
		{"as asked", 1000, 10, 1000, 10, 0, 0, 0},
		{"1 % more", 1000, 10, 1010, 10, 0, 0, 0},
		{"above 1 % more", 1000, 10, 1011, 10, 1, 0, 0},
		{"1 % less", 1000, 10, 990, 10, 0, 0, 0},
		{"above 1 % less", 1000, 10, 989, 10, 1, 0, 0},
		{"one token of 99", 99, 10, 100, 10, 1, 0, 0},
		{"an empty prompt", 0, 10, 1, 10, 1, 0, 0},
		{"shorter", 1000, 10, 1000, 9, 0, 1, 0},
		{"longer", 1000, 10, 1000, 11, 0, 0, 1},
		{"OSL 0 asks for one token", 1000, 0, 1000, 1, 0, 0, 0},
	} {
		rec := answered(0, 100)
		rec.InputLength, rec.OutputLength = test.isl, test.osl
		rec.Counts.Input, rec.Counts.Output = trace.Some(test.in), trace.Some(test.out)
		want := measure.Lengths{Prompts: 1, PromptsOff: test.off, Answers: 1, AnswersShorter: test.shorter, AnswersLonger: test.longer}
		if got := compute(t, measure.Options{}, rec).Lengths; got != want {
			t.Errorf("%s: %+v, want %+v", test.name, got, want)
		}
	}
}
