package measure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// late is a request that the client sent lag ms late and whose TTFT is ttft ms.
func late(lag, ttft float64) replay.Record {
	rec := answered(lag, lag+ttft)
	rec.Due, rec.Ready = 0, 0
	rec.Counts.Input = trace.Some(0)
	return rec
}

// prompts are n requests of 10 prompt tokens; the server counts 11 for off of them.
func prompts(n, off int) []replay.Record {
	rec := answered(0, 100)
	rec.InputLength, rec.Counts.Input = 10, trace.Some(10)
	records := slices.Repeat([]replay.Record{rec}, n)
	for i := range off {
		records[i].Counts.Input = trace.Some(11)
	}
	return records
}

// cached is a run of two equal prompts of 100 tokens. The server found some tokens of one in
// its cache.
func cached(tokens int) []replay.Record {
	rec := answered(0, 100)
	rec.InputLength, rec.HashIDs, rec.Counts.Input = 100, []uint64{1}, trace.Some(100)
	hit := rec
	hit.Counts.Cached = trace.Some(tokens)
	return []replay.Record{rec, hit}
}

// stamped are n requests whose arrivals the kernel stamped with a blur of up
// to some ms, of a TTFT of 100 ms.
func stamped(n int, blur float64) []replay.Record {
	rec := late(0, 100)
	rec.Stamps, rec.MaxStampError = replay.KernelStamps, at(blur)
	return slices.Repeat([]replay.Record{rec}, n)
}

// judgement is a run with the level of its verdict. What it says is the name of a check
// or a part of the evidence that has this level.
type judgement struct {
	name    string
	records []replay.Record
	opts    measure.Options
	want    measure.Level
	says    string
}

func (j judgement) check(t *testing.T) (r *measure.Result) {
	t.Helper()
	t.Run(j.name, func(t *testing.T) {
		r = compute(t, j.opts, j.records...)
		worst := slices.MaxFunc(r.Verdict.Evidence, func(a, b measure.Evidence) int { return int(a.Level) - int(b.Level) }).Level
		if r.Verdict.Level != j.want || worst != j.want || !says(r.Verdict, j.want, j.says) || len(r.Verdict.Reasons()) == 0 {
			t.Errorf("%v, want %v and %q, in %v", r.Verdict.Level, j.want, j.says, r.Verdict.Evidence)
		}
	})
	return r
}

// says tells if there is evidence of a level by a check, or with a text.
func says(v measure.Verdict, level measure.Level, text string) bool {
	return slices.ContainsFunc(v.Evidence, func(e measure.Evidence) bool {
		return e.Level == level && (e.Check == text || strings.Contains(e.Text, text))
	})
}

func TestVerdictOnReading(t *testing.T) {
	read := func(p99 float64) measure.Options {
		return measure.Options{ReadDelay: runfile.ReadDelay{Reads: 5, MedianMS: 1, P99MS: p99, MaxMS: 1000}}
	}
	slow := stamped(2, 0)
	for i := range slow {
		slow[i].First, slow[i].Last, slow[i].Done = instant(1000), instant(1000), at(1000)
	}
	client := late(0, 100)
	client.Stamps = replay.ClientStamps
	byClient := func(n int) []replay.Record {
		return append(stamped(198, 0), slices.Repeat([]replay.Record{client}, n)...)
	}
	merges := func(p99 float64) measure.Options {
		return measure.Options{Merges: runfile.Merges{Chunks: 9, Merged: 2, P99MS: p99, MaxMS: 5000}}
	}
	blurredFirst := stamped(3, 0)
	for i := range blurredFirst {
		blurredFirst[i].FirstStampError = at(2)
	}
	twoChunks := slices.Repeat([]replay.Record{answered(0, 1000, 1400)}, 2)
	for i := range twoChunks {
		twoChunks[i].Stamps = replay.KernelStamps
	}
	resumed := func(chunks uint64) measure.Options {
		return measure.Options{Merges: runfile.Merges{Chunks: chunks}, ReadDelay: runfile.ReadDelay{Reads: 1}}
	}
	waiting := func(ms float64) measure.Options {
		return sampled(t, runfile.Sample{SpanMS: 1000, SchedP99MS: ms}, runfile.Sample{SpanMS: 1000, SchedP99MS: ms})
	}
	for _, test := range []judgement{
		{"the kernel's stamps leave delay out", stamped(2, 0), read(5000), measure.Valid, "read delay p99 5000.00 ms, corrected by kernel timestamps"},
		{"delay of a run that was killed", stamped(2, 0), measure.Options{}, measure.Valid, "read delay unknown: the run did not end"},
		{"a hundredth by the client", byClient(2), read(5000), measure.Valid, "corrected by kernel timestamps"},
		{"more by the client, delay below a fifth of 10 ms", byClient(3), read(1.999999), measure.Valid, "3 responses timestamped by the client; read delay p99 2.00 ms (INVALID above 10.00 ms)"},
		{"delay of a fifth", byClient(3), read(2), measure.Suspect, "read delay p99 2.00 ms"},
		{"delay above 10 ms", byClient(3), read(10.000001), measure.Invalid, "read delay p99 10.00 ms"},
		// 5 % of a median TTFT of 1000 ms are 50 ms.
		{"delay above the share", append(slow, client), read(50.000001), measure.Invalid, "read delay p99 50.00 ms"},
		{"the client's stamps", []replay.Record{client, client}, measure.Options{}, measure.Suspect, "2 responses timestamped by the client; read delay unknown"},
		{"the client's stamps, goroutines in time", []replay.Record{client}, waiting(1.999), measure.Valid, "scheduling delay p99 up to 2.00 ms"},
		{"the client's stamps, goroutines late", []replay.Record{client}, waiting(2), measure.Suspect, "scheduling delay p99 up to 2.00 ms"},

		{"no blur", stamped(3, 0), read(0), measure.Valid, "3 responses timestamped by the kernel; timestamp error from late reads p99 0.00 ms"},
		{"blur above 10 ms", stamped(3, 10.000001), read(0), measure.Invalid, "timestamp error from late reads p99 10.00 ms"},
		{"blur of a few", append(stamped(199, 0), stamped(1, 5000)...), read(0), measure.Valid, "timestamp error from late reads p99 0.00 ms"},
		{"the chunks are known, not only the worst", stamped(3, 5000), merges(1.999), measure.Valid, "2 of 9 token chunks were read in one batch with the next; timestamp error p99 2.00 ms (INVALID above 10.00 ms)"},
		{"chunks above 10 ms", stamped(3, 0), merges(10.001), measure.Invalid, "timestamp error p99 10.00 ms"},
		// 5 % of a median ITL of 400 ms are 20 ms.
		{"chunks above the share", twoChunks, merges(20.01), measure.Invalid, "20.01 ms"},
		// The chunks that were read late are counted by process, so those of a run that was
		// killed and resumed are judged by the records too.
		{"all chunks counted", stamped(100, 50), resumed(100), measure.Valid, ""},
		{"a chunk not counted", stamped(100, 50), resumed(99), measure.Invalid, ""},
		{"first chunks of a fifth", blurredFirst, merges(0), measure.Suspect, "TTFT error from late reads p99 2.00 ms (SUSPECT from 2.00 ms, INVALID above 10.00 ms): use a larger client machine"},
	} {
		r := test.check(t)
		if r.ReadDelay != test.opts.ReadDelay || r.Merges != test.opts.Merges || r.StampedByKernel+r.StampedByClient != len(test.records) {
			t.Errorf("%s: read delay %v, merges %v, stamps %d and %d", test.name, r.ReadDelay, r.Merges, r.StampedByKernel, r.StampedByClient)
		}
	}
}

// sampled has the samples of a run, with a prompt count so that nothing else is
// suspect.
func sampled(t *testing.T, samples ...runfile.Sample) measure.Options {
	t.Helper()
	o, err := measure.SummarizeSamples(each(samples), measure.Span{})
	if err != nil {
		t.Fatal(err)
	}
	return measure.Options{Samples: o}
}

// The load on the client is evidence without a level: being late is what counts.
func TestVerdictOnTheClient(t *testing.T) {
	share := func(busy, of int) (samples []runfile.Sample) {
		for i := range of {
			s := runfile.Sample{SpanMS: 1000, CPU: 1, MachineShare: 0.8}
			if i < busy {
				s.MachineShare = 0.99
			}
			samples = append(samples, s)
		}
		return samples
	}
	pause := func(ms float64) []runfile.Sample {
		return []runfile.Sample{{SpanMS: 1000, GCPauses: 3, GCPauseMaxMS: ms, SchedP99MS: 7}}
	}
	one, spoiled := []replay.Record{late(0, 100)}, spoiled(100, 50, "client_lag")
	// A CPU that is more than 80 % busy is named as the cause of a late client.
	cpu := func(busy, share float64) measure.Options {
		return sampled(t, runfile.Sample{SpanMS: 1000, MachineBusy: busy, MachineShare: share})
	}
	const limit, remedy = "INVALID above 10.00 ms): ", "use a larger client machine"
	for _, test := range []judgement{
		{"busy for more", one, sampled(t, share(3, 21)...), measure.Valid, "up to 99 % of the machine in 9 of 10 seconds"},
		{"pauses", one, sampled(t, pause(10)...), measure.Valid, "longest GC pause 10.00 ms (3 in total); scheduling delay p99 7.00 ms in the worst second"},
		{"late, little CPU", spoiled, cpu(0.79, 0.79), measure.Invalid, limit + remedy},
		{"late, a busy CPU", spoiled, cpu(0.81, 0.79), measure.Invalid, limit + "CPU was 81 % busy in the busiest tenth of the run; " + remedy},
		{"late, a busy client", spoiled, cpu(0.79, 0.81), measure.Invalid, limit + "the client used 81 % of the CPU in the busiest tenth of the run; " + remedy},
	} {
		test.check(t)
	}
}

func TestThresholds(t *testing.T) {
	limit := func(given runfile.Thresholds) measure.Options { return measure.Options{Thresholds: given} }
	for _, test := range []judgement{
		{"lag of a fifth", []replay.Record{late(20, 100)}, limit(runfile.Thresholds{MaxLagMS: 100}), measure.Suspect, ""},
		{"a stricter lag", []replay.Record{late(5.1, 100)}, limit(runfile.Thresholds{MaxLagMS: 1}), measure.Invalid, ""}, // 5 % of 100 ms
		{"a larger share", []replay.Record{late(50, 100)}, limit(runfile.Thresholds{MaxLagShare: 0.5}), measure.Suspect, ""},
		{"prompts", prompts(1000, 19), limit(runfile.Thresholds{MaxPromptsOff: 0.1}), measure.Valid, ""},
		{"prompts above", prompts(1000, 101), limit(runfile.Thresholds{MaxPromptsOff: 0.1}), measure.Invalid, ""},
	} {
		if r := test.check(t); r.Thresholds.MaxLagMS == 0 || r.Thresholds.MaxLagShare == 0 || r.Thresholds.MaxPromptsOff == 0 {
			t.Errorf("%s: by %+v", test.name, r.Thresholds)
		}
	}
}

// A connection that took long to open is not the client's lateness.
func TestConnectTimeIsNoLag(t *testing.T) {
	rec := late(500, 100)
	rec.ConnectTime = at(499)
	r := compute(t, measure.Options{}, rec)
	if r.ClientLag.Max != 1 || r.ConnectTime.Max != 499 || r.ScheduleLag.Max != 500 || r.Verdict.Level == measure.Invalid {
		t.Errorf("client lag %v, connect time %v, schedule lag %v: %v", r.ClientLag.Max, r.ConnectTime.Max, r.ScheduleLag.Max, r.Verdict)
	}
}

func TestVerdict(t *testing.T) {
	failed := late(0, 100)
	failed.Class = replay.HTTPError
	held := late(0, 100)
	held.Due = at(-5000)
	opts := measure.Options{BlockSize: 128}
	for _, test := range []judgement{
		// The limit is 10 ms while 5 % of the median TTFT are less.
		{"lag below a fifth of 10 ms", []replay.Record{late(1.999999, 100)}, opts, measure.Valid, "client lag p99 2.00 ms (INVALID above 10.00 ms)"},
		{"lag of a fifth", []replay.Record{late(2, 100)}, opts, measure.Suspect, "2.00 ms"},
		{"lag above 10 ms", []replay.Record{late(10.000001, 100)}, opts, measure.Invalid, "10.00 ms"},
		// 5 % of a median TTFT of 1000 ms are 50 ms.
		{"lag below a fifth of the share", []replay.Record{late(9.999999, 1000)}, opts, measure.Valid, "INVALID above 50.00 ms"},
		{"lag of a fifth of the share", []replay.Record{late(10, 1000)}, opts, measure.Suspect, "INVALID above 50.00 ms"},
		{"lag above the share", []replay.Record{late(50.000001, 1000)}, opts, measure.Invalid, "INVALID above 50.00 ms"},
		// p99 of 1, 1, 1000 is 1 + 0.98 * 999.
		{"lag of a few", []replay.Record{late(1, 100), late(1, 100), late(1000, 100)}, opts, measure.Invalid, "980.02 ms"},
		{"what was held is not the client's fault", []replay.Record{held}, opts, measure.Valid, "0.00 ms"},
		{"lag of failed requests counts", []replay.Record{late(0, 100), func() replay.Record { r := failed; r.Ready = at(-500); return r }()}, opts, measure.Invalid, "495.00 ms"},

		{"prompts not counted", []replay.Record{answered(0, 100)}, opts, measure.Suspect, "prompt lengths are unverified"},

		// The trace explains 100 tokens, a chat template 64 more.
		{"cached as explained", cached(100), opts, measure.Valid, "100 prompt tokens cached; the trace explains up to 100"},
		{"a warm cache", cached(165), opts, measure.Suspect, "165 prompt tokens cached"},

		{"some failed", []replay.Record{late(0, 100), failed, failed}, opts, measure.Invalid, "2 of 3 requests failed (66.7 %, SUSPECT from 1 %, INVALID above 5 %): latencies cover only the other requests; most common: status"},
		{"none succeeded", []replay.Record{failed}, opts, measure.Invalid, "no request succeeded"},
		{"rates", []replay.Record{late(0, 100), func() replay.Record { r := late(500, 100); r.Due, r.Ready = at(250), at(500); return r }()},
			opts, measure.Valid, "offered 8.00 req/s, sent 4.00 req/s"},
	} {
		test.check(t)
	}
	if v := compute(t, opts, cached(164)...).Verdict; !says(v, measure.Valid, "cached") {
		t.Errorf("as many as with a chat template: %v", v)
	}
}

// A request that found more than the run can have put there is suspect, however
// much the others missed. The token counts of the prompts tell a chat template's
// prefix from a warm cache.
func TestVerdictOnAWarmCache(t *testing.T) {
	const warm = "warm cache: 1 of 3 requests hit 170 tokens that no request of this run can have cached"
	opts := measure.Options{BlockSize: 100}
	three := func(template, hit int) []replay.Record {
		records := []replay.Record{asked(0, 0, 50, 250, 0, 1, 2, 3), asked(1, 100, 150, 250, 0, 1, 2, 3), asked(2, 200, 250, 250, hit, 4, 5, 6)}
		for i := range records {
			records[i].Counts.Input.Value += template
		}
		return records
	}
	uncounted := three(0, 170)
	for i := range uncounted {
		uncounted[i].Counts.Input = trace.Opt[int]{}
	}
	for _, test := range []struct {
		name    string
		records []replay.Record
		want    bool
	}{
		{"cold", three(0, 0), false},
		{"warm", three(0, 170), true},
		{"warm behind a template", three(169, 170), true},
		{"a template", three(170, 170), false},
		{"prompts not counted", uncounted, false},
	} {
		v := compute(t, opts, test.records...).Verdict
		if says(v, measure.Suspect, warm) != test.want {
			t.Errorf("%s: %v", test.name, v)
		}
	}
}

// In virtual time the client is never late, even if records show a lag.
func TestVerdictInVirtualTime(t *testing.T) {
	records := []replay.Record{late(900, 1000), answered(5, 100)}
	records[1].Due, records[1].Counts.Input = 4, trace.Some(0)
	v := compute(t, measure.Options{Virtual: true}, records...).Verdict
	all := fmt.Sprint(v.Evidence)
	if v.Level == measure.Invalid || !strings.Contains(all, "virtual time: no client, so client lag is 0") ||
		!strings.Contains(all, "sent as soon as they had a slot") || strings.Contains(all, "client lag at p99") {
		t.Errorf("%v\n%s", v.Level, all)
	}
}
