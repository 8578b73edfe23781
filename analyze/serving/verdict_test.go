package serving_test

import (
	"slices"
	"strings"
	"testing"

	"moontide/analyze/serving"
	"moontide/replay"
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

func TestVerdict(t *testing.T) {
	failed := late(0, 100)
	failed.Class = replay.HTTPError
	held := late(0, 100)
	held.Due = at(-5000)
	for _, test := range []struct {
		name    string
		records []replay.Record
		want    serving.Level
		says    string
	}{
		// The limit is 10 ms while 5 % of the median TTFT are less.
		{"lag below a fifth of 10 ms", []replay.Record{late(1.999999, 100)}, serving.Valid, "client lag at p99 is 2.00 ms; the run is INVALID above 10.00 ms"},
		{"lag of a fifth", []replay.Record{late(2, 100)}, serving.Suspect, "2.00 ms"},
		{"lag of 10 ms", []replay.Record{late(10, 100)}, serving.Suspect, "10.00 ms"},
		{"lag above 10 ms", []replay.Record{late(10.000001, 100)}, serving.Invalid, "10.00 ms"},
		// 5 % of a median TTFT of 1000 ms are 50 ms.
		{"lag below a fifth of the share", []replay.Record{late(9.999999, 1000)}, serving.Valid, "INVALID above 50.00 ms"},
		{"lag of a fifth of the share", []replay.Record{late(10, 1000)}, serving.Suspect, "INVALID above 50.00 ms"},
		{"lag of the share", []replay.Record{late(50, 1000)}, serving.Suspect, "INVALID above 50.00 ms"},
		{"lag above the share", []replay.Record{late(50.000001, 1000)}, serving.Invalid, "INVALID above 50.00 ms"},
		// p99 of 1, 1, 1000 is 1 + 0.98 * 999.
		{"lag of a few", []replay.Record{late(1, 100), late(1, 100), late(1000, 100)}, serving.Invalid, "980.02 ms"},
		{"what was held is not the client's fault", []replay.Record{held}, serving.Valid, "0.00 ms"},
		{"lag of failed requests counts", []replay.Record{late(0, 100), func() replay.Record { r := failed; r.Ready = at(-500); return r }()}, serving.Invalid, "495.00 ms"},

		// 1 % and a fifth of it.
		{"no prompt off", prompts(1000, 0), serving.Valid, "0 of 1000 prompts differ"},
		{"1 of 1000 prompts off", prompts(1000, 1), serving.Valid, "1 of 1000"},
		{"2 of 1000 prompts off", prompts(1000, 2), serving.Suspect, "2 of 1000"},
		{"10 of 1000 prompts off", prompts(1000, 10), serving.Suspect, "10 of 1000"},
		{"11 of 1000 prompts off", prompts(1000, 11), serving.Invalid, "11 of 1000"},
		{"prompts not counted", []replay.Record{answered(0, 100)}, serving.Suspect, "did not count the prompt tokens"},

		// The trace explains 100 tokens, a chat template 64 more.
		{"cached as explained", cached(100), serving.Valid, "100 prompt tokens were cached; the trace explains up to 100"},
		{"cached with a template", cached(164), serving.Valid, "164 prompt tokens were cached"},
		{"a warm cache", cached(165), serving.Suspect, "165 prompt tokens were cached"},

		{"some failed", []replay.Record{late(0, 100), failed, failed}, serving.Valid, "2 of 3 requests failed"},
		{"none succeeded", []replay.Record{failed}, serving.Invalid, "no request succeeded"},
		{"rates", []replay.Record{late(0, 100), func() replay.Record { r := late(500, 100); r.Due, r.Ready = at(250), at(500); return r }()},
			serving.Valid, "offered at 4.00/s and sent at 2.00/s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := compute(t, serving.Options{BlockSize: 128}, test.records...).Verdict
			worst, said := serving.Valid, false
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
	v := compute(t, serving.Options{}, rec).Verdict
	want := serving.Evidence{Level: serving.Valid, Text: "1 of 1 answers are shorter than the trace's OSL, 0 longer"}
	if v.Level != serving.Valid || !slices.Contains(v.Evidence, want) {
		t.Errorf("%v", v)
	}
}

func TestLevelString(t *testing.T) {
	for level, want := range map[serving.Level]string{serving.Valid: "VALID", serving.Suspect: "SUSPECT", serving.Invalid: "INVALID"} {
		if got := level.String(); got != want {
			t.Errorf("%d is %s", level, got)
		}
	}
}
