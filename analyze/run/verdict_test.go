package run_test

import (
	"slices"
	"strings"
	"testing"

	"moontide/analyze/run"
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

// prompts are requests, off of which have one token too many of 10.
func prompts(n, off int) []replay.Record {
	rec := answered(0, 100)
	rec.InputLength, rec.Counts.Input = 10, trace.Some(10)
	records := slices.Repeat([]replay.Record{rec}, n)
	for i := range off {
		records[i].Counts.Input = trace.Some(11)
	}
	return records
}

// cached is a run of two equal prompts of 100 tokens, of which the server
// found some cached for one.
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

func TestVerdictOnReading(t *testing.T) {
	read := func(p99 float64) run.Options {
		return run.Options{ReadDelay: runfile.ReadDelay{Reads: 5, MedianMS: 1, P99MS: p99, MaxMS: 1000}}
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
	merges := func(p99 float64) run.Options {
		return run.Options{Merges: runfile.Merges{Chunks: 9, Merged: 2, P99MS: p99, MaxMS: 5000}}
	}
	blurredFirst := stamped(3, 0)
	for i := range blurredFirst {
		blurredFirst[i].FirstStampError = at(2)
	}
	waiting := func(ms float64) run.Options {
		return sampled(t, runfile.Sample{SpanMS: 1000, SchedP99MS: ms}, runfile.Sample{SpanMS: 1000, SchedP99MS: ms})
	}
	for _, test := range []struct {
		name    string
		records []replay.Record
		opts    run.Options
		want    run.Level
		says    string
	}{
		{"the kernel's stamps leave delay out", stamped(2, 0), read(5000), run.Valid, "read delay p99 5000.00 ms, corrected by kernel timestamps"},
		{"delay of a run that was killed", stamped(2, 0), run.Options{}, run.Valid, "read delay unknown: the run did not end"},
		{"a hundredth by the client", byClient(2), read(5000), run.Valid, "corrected by kernel timestamps"},
		{"more by the client, delay below a fifth of 10 ms", byClient(3), read(1.999999), run.Valid, "3 responses timestamped by the client; read delay p99 2.00 ms (INVALID above 10.00 ms)"},
		{"11 of 1001 by the client", append(stamped(990, 0), slices.Repeat([]replay.Record{client}, 11)...), read(2), run.Suspect, "11 responses timestamped by the client"},
		{"delay of a fifth", byClient(3), read(2), run.Suspect, "read delay p99 2.00 ms"},
		{"delay of 10 ms", byClient(3), read(10), run.Suspect, "read delay p99 10.00 ms"},
		{"delay above 10 ms", byClient(3), read(10.000001), run.Invalid, "read delay p99 10.00 ms"},
		// 5 % of a median TTFT of 1000 ms are 50 ms.
		{"delay below a fifth of the share", append(slow, client), read(9.999999), run.Valid, "INVALID above 50.00 ms"},
		{"delay above the share", append(slow, client), read(50.000001), run.Invalid, "read delay p99 50.00 ms"},
		{"the client's stamps", []replay.Record{client, client}, run.Options{}, run.Suspect, "2 responses timestamped by the client; read delay unknown"},
		{"the client's stamps, goroutines in time", []replay.Record{client}, waiting(1.999), run.Valid, "scheduling delay p99 up to 2.00 ms"},
		{"the client's stamps, goroutines late", []replay.Record{client}, waiting(2), run.Suspect, "scheduling delay p99 up to 2.00 ms"},
		{"the client's stamps, goroutines very late", []replay.Record{client}, waiting(2000), run.Suspect, "scheduling delay p99 up to 2000.00 ms"},

		{"no blur", stamped(3, 0), read(0), run.Valid, "3 responses timestamped by the kernel; timestamp error from late reads p99 0.00 ms"},
		{"blur of a fifth", stamped(3, 2), read(0), run.Suspect, "timestamp error from late reads p99 2.00 ms"},
		{"blur above 10 ms", stamped(3, 10.000001), read(0), run.Invalid, "timestamp error from late reads p99 10.00 ms"},
		{"blur of a few", append(stamped(199, 0), stamped(1, 5000)...), read(0), run.Valid, "timestamp error from late reads p99 0.00 ms"},
		{"the chunks are known, not only the worst", stamped(3, 5000), merges(1.999), run.Valid, "2 of 9 token chunks were read in one batch with the next; timestamp error p99 2.00 ms (INVALID above 10.00 ms)"},
		{"chunks of a fifth", stamped(3, 0), merges(2), run.Suspect, "timestamp error p99 2.00 ms"},
		{"chunks above 10 ms", stamped(3, 0), merges(10.001), run.Invalid, "timestamp error p99 10.00 ms"},
		{"first chunks of a fifth", blurredFirst, merges(0), run.Suspect, "TTFT error from late reads p99 2.00 ms (SUSPECT from 2.00 ms, INVALID above 10.00 ms): use a larger client machine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := compute(t, test.opts, test.records...)
			said := slices.ContainsFunc(r.Verdict.Evidence, func(e run.Evidence) bool {
				return e.Level == test.want && strings.Contains(e.Text, test.says)
			})
			if r.Verdict.Level != test.want || !said {
				t.Errorf("%v, want %v and %q, in %v", r.Verdict.Level, test.want, test.says, r.Verdict.Evidence)
			}
			if r.ReadDelay != test.opts.ReadDelay || r.Merges != test.opts.Merges || r.StampedByKernel+r.StampedByClient != len(test.records) {
				t.Errorf("read delay %v, merges %v, stamps %d and %d", r.ReadDelay, r.Merges, r.StampedByKernel, r.StampedByClient)
			}
		})
	}
}

// ITL is judged separately: by 5 % of its median, not of TTFT's.
func TestMergesGoByITL(t *testing.T) {
	rec := answered(0, 1000, 1400)
	rec.Stamps = replay.KernelStamps
	for p99, want := range map[float64]run.Level{4.01: run.Suspect, 20: run.Suspect, 20.01: run.Invalid} {
		r := compute(t, run.Options{Merges: runfile.Merges{Chunks: 2, Merged: 1, P99MS: p99}}, rec, rec)
		if r.Verdict.Level != want {
			t.Errorf("%v ms: %v", p99, r.Verdict)
		}
	}
}

// sampled has the samples of a run, with a prompt count so that nothing else is
// suspect.
func sampled(t *testing.T, samples ...runfile.Sample) run.Options {
	t.Helper()
	o, err := run.SummarizeSamples(eachSample(samples), run.Span{})
	if err != nil {
		t.Fatal(err)
	}
	return run.Options{Samples: o}
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
	for _, test := range []struct {
		name    string
		samples []runfile.Sample
		want    run.Level
		says    string
	}{
		{"busy for a tenth", share(2, 21), run.Valid, "client used 1.00 CPU cores, up to 80 % of the machine"},
		{"busy for more", share(3, 21), run.Valid, "up to 99 % of the machine in 9 of 10 seconds"},
		{"pauses", pause(10), run.Valid, "longest GC pause 10.00 ms (3 in total); scheduling delay p99 7.00 ms in the worst second"},
		{"a very long pause", pause(1e6), run.Valid, "pause 1000000.00 ms"},
	} {
		v := compute(t, sampled(t, test.samples...), late(0, 100)).Verdict
		said := slices.ContainsFunc(v.Evidence, func(e run.Evidence) bool { return e.Level == test.want && strings.Contains(e.Text, test.says) })
		if v.Level != test.want || !said {
			t.Errorf("%s: %v, want %q", test.name, v, test.says)
		}
	}
}

func TestThresholds(t *testing.T) {
	for _, test := range []struct {
		name    string
		given   runfile.Thresholds
		records []replay.Record
		want    run.Level
	}{
		{"lag below a fifth", runfile.Thresholds{MaxLagMS: 100}, []replay.Record{late(19.9, 100)}, run.Valid},
		{"lag of a fifth", runfile.Thresholds{MaxLagMS: 100}, []replay.Record{late(20, 100)}, run.Suspect},
		{"lag above", runfile.Thresholds{MaxLagMS: 100}, []replay.Record{late(100.1, 100)}, run.Invalid},
		{"a stricter lag", runfile.Thresholds{MaxLagMS: 1}, []replay.Record{late(5.1, 100)}, run.Invalid}, // 5 % of 100 ms
		{"a larger share", runfile.Thresholds{MaxLagShare: 0.5}, []replay.Record{late(50, 100)}, run.Suspect},
		{"prompts", runfile.Thresholds{MaxPromptsOff: 0.1}, prompts(1000, 19), run.Valid},
		{"prompts of a fifth", runfile.Thresholds{MaxPromptsOff: 0.1}, prompts(1000, 20), run.Suspect},
		{"prompts above", runfile.Thresholds{MaxPromptsOff: 0.1}, prompts(1000, 101), run.Invalid},
	} {
		r := compute(t, run.Options{Thresholds: test.given}, test.records...)
		if r.Verdict.Level != test.want || r.Thresholds.MaxLagMS == 0 || r.Thresholds.MaxLagShare == 0 || r.Thresholds.MaxPromptsOff == 0 {
			t.Errorf("%s: %v by %+v", test.name, r.Verdict, r.Thresholds)
		}
	}
}

// A connection that took long to open is not the client's lateness.
func TestConnectTimeIsNoLag(t *testing.T) {
	rec := late(500, 100)
	rec.ConnectTime = at(499)
	r := compute(t, run.Options{}, rec)
	if r.ClientLag.Max != 1 || r.ConnectTime.Max != 499 || r.ScheduleLag.Max != 500 || r.Verdict.Level == run.Invalid {
		t.Errorf("client lag %v, connect time %v, schedule lag %v: %v", r.ClientLag.Max, r.ConnectTime.Max, r.ScheduleLag.Max, r.Verdict)
	}
}

func TestVerdict(t *testing.T) {
	failed := late(0, 100)
	failed.Class = replay.HTTPError
	held := late(0, 100)
	held.Due = at(-5000)
	for _, test := range []struct {
		name    string
		records []replay.Record
		want    run.Level
		says    string
	}{
		// The limit is 10 ms while 5 % of the median TTFT are less.
		{"lag below a fifth of 10 ms", []replay.Record{late(1.999999, 100)}, run.Valid, "client lag p99 2.00 ms (INVALID above 10.00 ms)"},
		{"lag of a fifth", []replay.Record{late(2, 100)}, run.Suspect, "2.00 ms"},
		{"lag of 10 ms", []replay.Record{late(10, 100)}, run.Suspect, "10.00 ms"},
		{"lag above 10 ms", []replay.Record{late(10.000001, 100)}, run.Invalid, "10.00 ms"},
		// 5 % of a median TTFT of 1000 ms are 50 ms.
		{"lag below a fifth of the share", []replay.Record{late(9.999999, 1000)}, run.Valid, "INVALID above 50.00 ms"},
		{"lag of a fifth of the share", []replay.Record{late(10, 1000)}, run.Suspect, "INVALID above 50.00 ms"},
		{"lag of the share", []replay.Record{late(50, 1000)}, run.Suspect, "INVALID above 50.00 ms"},
		{"lag above the share", []replay.Record{late(50.000001, 1000)}, run.Invalid, "INVALID above 50.00 ms"},
		// p99 of 1, 1, 1000 is 1 + 0.98 * 999.
		{"lag of a few", []replay.Record{late(1, 100), late(1, 100), late(1000, 100)}, run.Invalid, "980.02 ms"},
		{"what was held is not the client's fault", []replay.Record{held}, run.Valid, "0.00 ms"},
		{"lag of failed requests counts", []replay.Record{late(0, 100), func() replay.Record { r := failed; r.Ready = at(-500); return r }()}, run.Invalid, "495.00 ms"},

		// 1 % and a fifth of it.
		{"no prompt off", prompts(1000, 0), run.Valid, "0 of 1000 prompts differ"},
		{"1 of 1000 prompts off", prompts(1000, 1), run.Valid, "1 of 1000"},
		{"2 of 1000 prompts off", prompts(1000, 2), run.Suspect, "2 of 1000"},
		{"10 of 1000 prompts off", prompts(1000, 10), run.Suspect, "10 of 1000"},
		{"11 of 1000 prompts off", prompts(1000, 11), run.Invalid, "11 of 1000"},
		{"prompts not counted", []replay.Record{answered(0, 100)}, run.Suspect, "prompt lengths are unverified"},

		// The trace explains 100 tokens, a chat template 64 more.
		{"cached as explained", cached(100), run.Valid, "100 prompt tokens cached; the trace explains up to 100"},
		{"a warm cache", cached(165), run.Suspect, "165 prompt tokens cached"},

		{"some failed", []replay.Record{late(0, 100), failed, failed}, run.Invalid, "2 of 3 requests failed (66.7 %, SUSPECT from 1 %, INVALID above 5 %): latencies cover only the other requests; most common: status"},
		{"none succeeded", []replay.Record{failed}, run.Invalid, "no request succeeded"},
		{"rates", []replay.Record{late(0, 100), func() replay.Record { r := late(500, 100); r.Due, r.Ready = at(250), at(500); return r }()},
			run.Valid, "offered 8.00 req/s, sent 4.00 req/s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := compute(t, run.Options{BlockSize: 128}, test.records...).Verdict
			worst, said := run.Valid, false
			for _, e := range v.Evidence {
				worst = max(worst, e.Level)
				if strings.Contains(e.Text, test.says) {
					said = true
					if e.Level != test.want {
						t.Errorf("%v: %s", e.Level, e.Text)
					}
				}
			}
			if v.Level != test.want || worst != v.Level || !said {
				t.Errorf("%v, want %v and %q, in %v", v.Level, test.want, test.says, v.Evidence)
			}
		})
	}
}

func TestVerdictOnAnswerLengths(t *testing.T) {
	rec := late(0, 100)
	rec.OutputLength, rec.Counts.Output = 9, trace.Some(1)
	v := compute(t, run.Options{}, rec).Verdict
	want := run.Evidence{Check: "answer_lengths", Level: run.Valid, Text: "0 of 1 answers are longer than max_tokens, 1 shorter"}
	if v.Level != run.Valid || !slices.Contains(v.Evidence, want) {
		t.Errorf("%v", v)
	}
}

func TestLevelString(t *testing.T) {
	for level, want := range map[run.Level]string{run.Valid: "VALID", run.Suspect: "SUSPECT", run.Invalid: "INVALID"} {
		if got := level.String(); got != want {
			t.Errorf("%d is %s", level, got)
		}
	}
}

// A request that found more than the run can have put there is suspect, however
// much the others missed. The token counts of the prompts tell a chat template's
// prefix from a warm cache.
func TestVerdictOnAWarmCache(t *testing.T) {
	const warm = "warm cache: 1 of 3 requests hit 170 tokens that no request of this run can have cached"
	opts := run.Options{BlockSize: 100}
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
		said := slices.ContainsFunc(v.Evidence, func(e run.Evidence) bool {
			return e.Level == run.Suspect && strings.Contains(e.Text, warm)
		})
		if said != test.want {
			t.Errorf("%s: %v", test.name, v)
		}
	}
}

// In virtual time the client is never late, whatever the records contain.
func TestVerdictInVirtualTime(t *testing.T) {
	records := []replay.Record{late(900, 1000), answered(5, 100)}
	records[1].Due, records[1].Counts.Input = 4, trace.Some(0)
	v := compute(t, run.Options{Virtual: true}, records...).Verdict
	var texts []string
	for _, e := range v.Evidence {
		texts = append(texts, e.Text)
	}
	all := strings.Join(texts, "\n")
	if v.Level == run.Invalid || !strings.Contains(all, "virtual time: no client, so client lag is 0") ||
		!strings.Contains(all, "sent as soon as they had a slot") || strings.Contains(all, "client lag at p99") {
		t.Errorf("%v\n%s", v.Level, all)
	}
}
