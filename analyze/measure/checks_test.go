package measure_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// The page about the verdict lists the checks and their default limits.
func TestTrustPageListsTheChecks(t *testing.T) {
	const path, begin, end = "../../replay/TRUST.md", "<!-- checks, written by go test ./analyze/measure -update -->\n", "<!-- end of checks -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no table of checks", path)
	}
	table := "| check | SUSPECT from | INVALID above | threshold | what to do |\n| --- | --- | --- | --- | --- |\n"
	for _, c := range measure.Checks() {
		if c.Limits == nil || c.Remedy == "" {
			continue
		}
		l := c.Limits(measure.DefaultThresholds)
		if math.IsInf(l.Suspect, 1) {
			continue // never crossed
		}
		cell := func(limit float64) string {
			switch {
			case math.IsInf(limit, 1):
				return ""
			case limit <= math.SmallestNonzeroFloat64:
				return "any"
			case c.Setting == "lag", limit > 1:
				return fmt.Sprintf("%g ms", limit)
			}
			return fmt.Sprintf("%.3g %%", 100*limit)
		}
		setting := ""
		if c.Setting != "" {
			setting = "`" + c.Setting + "`"
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", c.What, cell(l.Suspect), cell(l.Invalid), setting, c.Remedy)
	}
	tracetest.Golden(t, path, before+begin+table+end+after)
}

// sound is a run of n requests that passes every check: sent when due, 10 ms apart,
// with two tokens each as the server counts them.
func sound(n int) []replay.Record {
	var records []replay.Record
	for i := range n {
		sent := 10 * float64(i)
		rec := answered(sent, sent+100, sent+120)
		rec.Row, rec.InputLength, rec.HashIDs = i, 10, []uint64{uint64(i)}
		rec.Counts = replay.Counts{Input: trace.Some(10), Output: trace.Some(2), Cached: trace.Some(0)}
		records = append(records, rec)
	}
	return records
}

// worsenings spoil the first n requests of a sound run, each in a way that one check
// has to notice.
var worsenings = map[string]func(rec *replay.Record){
	"failed": func(rec *replay.Record) { rec.Class, rec.Error = replay.HTTPError, "HTTP status 500" },
	"client_failed": func(rec *replay.Record) {
		*rec = replay.Record{Due: rec.Due, Ready: rec.Ready, Done: rec.Done, Class: replay.ClientFault, Error: "too many open files"}
	},
	"prompt_lengths": func(rec *replay.Record) { rec.Counts.Input = trace.Some(11) },
	"answer_lengths": func(rec *replay.Record) { rec.OutputLength = 3 },
	"token_counts":   func(rec *replay.Record) { rec.Counts.Output = trace.Some(0) },
	"client_lag":     func(rec *replay.Record) { *rec = shifted(*rec, 50) },
}

// shifted is a request that the client sent late, by some milliseconds.
func shifted(rec replay.Record, ms float64) replay.Record {
	rec.Sent.Value += at(ms)
	rec.First.Value, rec.Last.Value, rec.Done = rec.First.Value+at(ms), rec.Last.Value+at(ms), rec.Done+at(ms)
	return rec
}

func spoiled(n, bad int, check string) []replay.Record {
	records := sound(n)
	for i := range bad {
		worsenings[check](&records[i])
	}
	return records
}

// Each check has the limits of its definition: SUSPECT from a share of 1000 requests,
// INVALID above another.
func TestLimitsOfTheChecks(t *testing.T) {
	for check, bad := range map[string]struct{ suspect, invalid int }{
		"failed":         {10, 51},
		"client_failed":  {1, 11},
		"prompt_lengths": {2, 11},
		"answer_lengths": {2, 11},
		"token_counts":   {1, 51},
	} {
		for n, want := range map[int]measure.Level{0: measure.Valid, bad.suspect - 1: measure.Valid, bad.suspect: measure.Suspect, bad.invalid - 1: measure.Suspect, bad.invalid: measure.Invalid} {
			v := compute(t, measure.Options{BlockSize: 16, LengthsEnforced: true}, spoiled(1000, n, check)...).Verdict
			if v.Level != want || want != measure.Valid && !says(v, want, check) {
				t.Errorf("%s: %d of 1000: %v, want %v", check, n, v, want)
			}
		}
	}
}

// A check that failed names its value, its limits, the likely cause and a remedy.
func TestCrossedChecksExplain(t *testing.T) {
	for check, want := range map[string]string{
		"failed":         "60 of 1000 requests failed (6 %, SUSPECT from 1 %, INVALID above 5 %): latencies cover only the other requests; most common: status",
		"client_failed":  "60 of 1000 requests were not sent because of the client (6 %, INVALID above 1 %): if connections failed, raise the open file limit or the local port range, or check the host name; first error: too many open files",
		"prompt_lengths": "60 of 1000 prompts differ from the trace's ISL by more than 1 % (server's count) (6 %, SUSPECT from 0.2 %, INVALID above 1 %): send token ids",
		"answer_lengths": "60 of 1000 answers have the wrong length: 60 shorter, 0 longer (6 %, SUSPECT from 0.2 %, INVALID above 1 %): the server ignores",
		"token_counts":   "60 of 1000 answers have a token count that contradicts their stream (6 %, INVALID above 5 %): the server reports wrong usage",
		"client_lag":     "client lag p99 50.00 ms (SUSPECT from 2.00 ms, INVALID above 10.00 ms): use a larger client machine or fewer streams",
	} {
		v := compute(t, measure.Options{BlockSize: 16, LengthsEnforced: true}, spoiled(1000, 60, check)...).Verdict
		if !says(v, measure.Invalid, want) {
			t.Errorf("%s: %v, want %q", check, v, want)
		}
	}
}

// changed is a sound run of 1000 requests with a change to the first n.
func changed(n int, change func(rec *replay.Record)) []replay.Record {
	records := sound(1000)
	for i := range n {
		change(&records[i])
	}
	return records
}

func TestVerdictOfChangedRuns(t *testing.T) {
	opts := measure.Options{BlockSize: 16}
	enforced, windowed := opts, opts
	enforced.LengthsEnforced = true
	windowed.Window = measure.Span{From: at(1000), To: at(9000)}
	skipped := func(n int) measure.Options { return measure.Options{BlockSize: 16, Skipped: n} }
	cancel := func(rec *replay.Record) { rec.Class = replay.Canceled }
	longer := func(rec *replay.Record) { rec.OutputLength = 1 }
	retried := func(rec *replay.Record) { rec.Retries = 1 }
	slowly := func(rec *replay.Record) { rec.ConnectTime = at(1000); *rec = shifted(*rec, 1000) }
	noInput := func(rec *replay.Record) { rec.Counts.Input = trace.Opt[int]{} }
	noOutput := func(rec *replay.Record) { rec.Counts.Output = trace.Opt[int]{} }
	longerWithoutUsage := changed(1000, noOutput)
	for i := range 11 {
		longer(&longerWithoutUsage[i])
	}
	all := []judgement{
		// Requests canceled by the user are neither the server's nor the client's fault, but
		// the latencies of the others are those of the faster ones.
		{"9 canceled", changed(9, cancel), opts, measure.Valid, "9 of 1000 requests were in flight when the run was stopped"},
		{"10 canceled", changed(10, cancel), opts, measure.Suspect, "10 of 1000 requests were in flight when the run was stopped"},
		{"900 canceled", changed(900, cancel), opts, measure.Suspect, "900 of 1000 requests were in flight when the run was stopped"},
		// Turns that were not sent after a failed one are as bad as failed ones.
		{"9 skipped", sound(1000), skipped(9), measure.Valid, "skipped"},
		{"11 skipped", sound(1000), skipped(11), measure.Suspect, "skipped"},
		{"52 skipped", sound(1000), skipped(52), measure.Suspect, "skipped"},
		{"53 skipped", sound(1000), skipped(53), measure.Invalid, "skipped"},
		// Without enforcement, answers may be shorter than the trace's, but no answer may be
		// longer than max_tokens. Without usage, the chunks are counted.
		{"shorter", changed(500, worsenings["answer_lengths"]), opts, measure.Valid, ""},
		{"longer", changed(20, longer), opts, measure.Invalid, "answer_lengths"},
		{"no usage", changed(1000, noOutput), opts, measure.Valid, ""},
		{"longer, no usage", longerWithoutUsage, opts, measure.Invalid, "answer_lengths"},
		{"longer, no usage, enforced", longerWithoutUsage, enforced, measure.Invalid, "answer_lengths"},
		// Requests that reached the server later than intended, or failed where the window
		// does not show it.
		{"few retries", changed(9, retried), opts, measure.Valid, ""},
		{"retries", changed(10, retried), opts, measure.Suspect, "retries"},
		{"slow connections", changed(11, slowly), opts, measure.Suspect, "connect_time"},
		{"failures before the window", spoiled(1000, 20, "failed"), windowed, measure.Suspect, "requests failed outside the measurement window ("},
	}
	// Requests whose lengths the server does not report cross a check as early as those
	// with other lengths, but alone they are only SUSPECT.
	for check, change := range map[string]func(*replay.Record){"prompt_lengths": noInput, "answer_lengths": noOutput} {
		for n, want := range map[int]measure.Level{1: measure.Valid, 2: measure.Suspect, 999: measure.Suspect, 1000: measure.Suspect} {
			all = append(all, judgement{fmt.Sprint(check, " ", n), changed(n, change), enforced, want, "lengths are unverified"})
		}
	}
	for _, test := range all {
		test.check(t)
	}
}

// The rate that was sent is compared with the offered one unless requests waited for
// a slot. The lag of a short run's last request is no difference of rates.
func TestVerdictOnTheRate(t *testing.T) {
	slower := func(factor float64) []replay.Record {
		records := sound(1000)
		for i := range records {
			rec := &records[i]
			rec.ConnectTime = at((factor - 1) * 10 * float64(i))
			*rec = shifted(*rec, (factor-1)*10*float64(i))
		}
		return records
	}
	level := func(records []replay.Record) measure.Level {
		v := compute(t, measure.Options{BlockSize: 16}, records...).Verdict
		return v.Evidence[slices.IndexFunc(v.Evidence, func(e measure.Evidence) bool { return e.Check == "sent_rate" })].Level
	}
	for factor, want := range map[float64]measure.Level{1: measure.Valid, 1.009: measure.Valid, 1.02: measure.Suspect, 1.05: measure.Suspect, 1.06: measure.Invalid} {
		if got := level(slower(factor)); got != want {
			t.Errorf("sent %v times as slowly: %v, want %v", factor, got, want)
		}
	}
	closed := compute(t, measure.Options{BlockSize: 16, Closed: true, MaxConcurrency: 8}, slower(2)...).Verdict
	if !says(closed, measure.Valid, "sent_rate") {
		t.Errorf("a closed loop: %v", closed)
	}
	for queued, want := range map[int]measure.Level{1: measure.Invalid, 20: measure.Valid} {
		records := slower(2)
		for i := range queued {
			records[500+i].Due -= at(1)
		}
		if got := level(records); got != want {
			t.Errorf("%d of 1000 waited for a slot: %v, want %v", queued, got, want)
		}
	}
	short := sound(2)
	short[1].ConnectTime = at(5)
	short[1] = shifted(short[1], 5)
	if got := level(short); got != measure.Valid {
		t.Errorf("a short run: %v", got)
	}
	// The rate over the first half of a short run differs by one interval's share.
	for class, want := range map[replay.Class]measure.Level{replay.Connect: measure.Valid, replay.ClientFault: measure.Suspect} {
		half := sound(40)
		for i := 20; i < 40; i++ {
			half[i] = replay.Record{Due: half[i].Due, Ready: half[i].Ready, Done: half[i].Done, Class: class, Error: "not sent"}
		}
		if got := level(half); got != want {
			t.Errorf("half were not sent, class %s: %v, want %v", class, got, want)
		}
	}
}

// Pacing names the share of requests that waited for a slot, and for how long.
func TestPacing(t *testing.T) {
	records := sound(100)
	for i := range 71 {
		records[i].Due -= at(14200)
	}
	r := compute(t, measure.Options{BlockSize: 16, MaxConcurrency: 64}, records...)
	if got, want := r.Pacing(), "paced by a limit of 64 in flight: 71 % of requests waited, 14.2 s at p99"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if r.Verdict.Level != measure.Valid {
		t.Errorf("%v", r.Verdict)
	}
	if got, want := compute(t, measure.Options{}, records...).Pacing(), "paced by earlier turns of the sessions: 71 % of requests waited, 14.2 s at p99"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := compute(t, measure.Options{MaxConcurrency: 64}, sound(100)...).Pacing(); got != "" {
		t.Errorf("nothing waited: %q", got)
	}
}

// Usage that the stream contradicts is replaced by the number of chunks.
func TestContradictedTokenCounts(t *testing.T) {
	for _, test := range []struct {
		osl, usage, chunks, want int
		contradicted             bool
	}{
		{5, 5, 5, 5, false},
		{500, 500, 167, 500, false}, // several tokens per chunk
		{5, 0, 5, 5, true},          // none although tokens came
		{5, 5000, 5, 5, true},       // above max_tokens
		{0, 1, 1, 1, false},         // an OSL of 0 asks for one token
		{100, 97, 100, 100, true},   // 3 and 3 % too few
		{100, 98, 100, 98, false},   // 2 too few
		{500, 495, 500, 495, false}, // 1 % too few
		{500, 494, 500, 500, true},
	} {
		rec := replay.Record{Request: trace.Request{OutputLength: test.osl}, Chunks: test.chunks, Counts: replay.Counts{Output: trace.Some(test.usage)}}
		got, source := rec.OutputTokens()
		if got != test.want || (source == replay.ContradictedTokens) != test.contradicted {
			t.Errorf("%+v: %d, %v", test, got, source)
		}
	}
}

// A server that sends a first chunk of 5 tokens and then one token each, or 3 tokens
// in every chunk, is measured by tokens, not by chunks.
func TestTokensPerChunk(t *testing.T) {
	chunked := func(tokens ...int32) replay.Record {
		var chunks []float64
		now, sum := 100.0, int32(0)
		for i, k := range tokens {
			if i > 0 {
				now += 10 * float64(k) // 10 ms per token
			}
			chunks, sum = append(chunks, now), sum+k
		}
		rec := answered(0, chunks...)
		rec.InputLength, rec.OutputLength, rec.ChunkTokens = 10, int(sum), tokens
		rec.Counts = replay.Counts{Input: trace.Some(10), Output: trace.Some(int(sum))}
		return rec
	}
	for name, rec := range map[string]replay.Record{
		"first chunk of 5": chunked(5, 1, 1, 1, 1, 1, 1, 1),
		"3 per chunk":      chunked(3, 3, 3, 3, 3),
		"uneven":           chunked(1, 4, 2, 7, 1, 1),
	} {
		tokens := rec.OutputLength - int(rec.ChunkTokens[0])
		r := compute(t, measure.Options{}, rec, answered(5000, 5100, 5110))
		if d := r.ITLPerToken; d.Count != tokens+1 || d.Min != 10 || d.Max != 10 {
			t.Errorf("%s: %d gaps per token from %v to %v ms, want %d of 10", name, d.Count, d.Min, d.Max, tokens+1)
		}
		if d := r.TokensPerChunk; d.Sum != float64(rec.OutputLength+2) || d.Count != rec.Chunks+2 {
			t.Errorf("%s: %v tokens in %d chunks", name, d.Sum, d.Count)
		}
		if r.PeakOutputRate != float64(rec.OutputLength) {
			t.Errorf("%s: peak %v", name, r.PeakOutputRate)
		}
	}
}

// Long answers that arrive at one instant were not streamed, whether in one chunk or
// in many.
func TestAnswersAtOneInstant(t *testing.T) {
	atOnce := func(tokens, chunks int) replay.Record {
		rec := answered(0, slices.Repeat([]float64{100}, chunks)...)
		rec.InputLength, rec.OutputLength, rec.HashIDs = 10, tokens, []uint64{0}
		rec.Counts = replay.Counts{Input: trace.Some(10), Output: trace.Some(tokens)}
		return rec
	}
	streamed := atOnce(16, 16)
	streamed.Gaps[14], streamed.Last.Value, streamed.Done = at(1), streamed.Last.Value+at(1), streamed.Done+at(1)
	of := func(rec replay.Record, bad int) []replay.Record {
		return append(slices.Repeat([]replay.Record{rec}, bad), slices.Repeat([]replay.Record{streamed}, 1000-bad)...)
	}
	opts := measure.Options{BlockSize: 16}
	for _, test := range []judgement{
		{"one chunk", of(atOnce(16, 1), 10), opts, measure.Suspect, "streaming"},
		{"many chunks", of(atOnce(16, 16), 10), opts, measure.Suspect, "streaming"},
		{"all", of(atOnce(16, 16), 1000), opts, measure.Suspect, "streaming"},
		{"fewer", of(atOnce(16, 16), 9), opts, measure.Valid, ""},
		{"so few tokens that a server may collect them", of(atOnce(15, 1), 1000), opts, measure.Valid, ""},
		{"streamed", of(streamed, 1000), opts, measure.Valid, ""},
	} {
		test.check(t)
	}
}

// Tokens of chunks that cannot be true are replaced by equal ones.
func TestImplausibleChunkTokens(t *testing.T) {
	for name, tokens := range map[string][]int32{
		"all in the first chunk":   {8, 0, 0, 0, 0, 0, 0, 0},
		"more than the answer has": {5, 5, 5, 5, 5, 5, 5, 5},
		"fewer":                    {0, 0, 1, 1, 1, 1, 0, 0},
	} {
		rec := answered(0, 100, 110, 120, 130, 140, 150, 160, 170)
		rec.InputLength, rec.ChunkTokens = 10, tokens
		rec.Counts = replay.Counts{Input: trace.Some(10), Output: trace.Some(8)}
		r := compute(t, measure.Options{}, rec)
		if d := r.ITLPerToken; d.Count != 7 || d.Min != 10 || d.Max != 10 || r.TokensPerChunk.Max != 1 || r.PeakOutputRate != 8 {
			t.Errorf("%s: %+v, %+v, peak %v", name, d, r.TokensPerChunk, r.PeakOutputRate)
		}
	}
}

// Records that cannot be read, requests without a record, records of one row twice or of
// no row, and records whose times contradict each other make a run SUSPECT, and INVALID
// above 1 % of them.
func TestVerdictOnRecords(t *testing.T) {
	unreadable := func(n int) measure.Options {
		return measure.Options{BlockSize: 16, Unreadable: func() (int, error) { return n, errors.New("line 7: broken") }}
	}
	of100 := measure.Options{Rows: 100, Sent: 100, BlockSize: 16}
	with := func(records []replay.Record, rows ...int) []replay.Record {
		for _, row := range rows {
			rec := sound(1)[0]
			rec.Row = row
			records = append(records, rec)
		}
		return records
	}
	all := []judgement{
		{"none unreadable", sound(100), unreadable(0), measure.Valid, ""},
		{"one unreadable", sound(99), unreadable(1), measure.Suspect, "line 7: broken"},
		{"two unreadable", sound(98), unreadable(2), measure.Invalid, "line 7: broken"},
		{"all are there", sound(100), of100, measure.Valid, ""},
		{"one is missing", sound(99), of100, measure.Suspect, "records"},
		{"two are missing", sound(98), of100, measure.Invalid, "records"},
		{"one row twice", with(sound(100), 7), of100, measure.Suspect, "records"},
		{"two rows twice", with(sound(100), 7, 8), of100, measure.Invalid, "records"},
		{"a row twice in place of another", with(sound(99), 7), of100, measure.Suspect, "records"},
		{"rows of another trace", with(sound(100), 100, -1), of100, measure.Invalid, "records"},
		{"rows are unknown", with(sound(95), 7, 8), measure.Options{Sent: 100, BlockSize: 16}, measure.Valid, ""},
	}
	for name, edit := range map[string]func(rec *replay.Record){
		"first before sent": func(rec *replay.Record) { rec.First.Value = rec.Sent.Value - at(5000) },
		"last before first": func(rec *replay.Record) { rec.Last.Value = rec.First.Value - 1 },
		"done before last":  func(rec *replay.Record) { rec.Done = rec.Last.Value - at(200) },
		"negative gap":      func(rec *replay.Record) { rec.Gaps[0] = -1 },
		"visible too early": func(rec *replay.Record) { rec.FirstVisible = trace.Some(rec.First.Value - 1) },
		"visible too late":  func(rec *replay.Record) { rec.FirstVisible = trace.Some(rec.Last.Value + 1) },
	} {
		for n, want := range []measure.Level{measure.Valid, measure.Suspect, measure.Invalid} {
			records, says := sound(100), ""
			for i := range n {
				edit(&records[i])
				says = "records"
			}
			all = append(all, judgement{fmt.Sprint(name, " ", n), records, measure.Options{BlockSize: 16}, want, says})
		}
	}
	for _, test := range all {
		test.check(t)
	}
	if r := compute(t, unreadable(2), sound(98)...); r.Records != 100 {
		t.Errorf("%d records", r.Records)
	}
}

// A text whose ISL the trace only estimates proves nothing about the prompts of
// a run; the others are judged as they are without it.
func TestVerdictOnEstimatedPrompts(t *testing.T) {
	for name, tc := range map[string]struct {
		prompts, off, estimated int
		want                    measure.Level
	}{
		"all estimated":              {0, 0, 100, measure.Valid},
		"none off":                   {100, 0, 100, measure.Valid},
		"a wrong one of those meant": {50, 1, 950, measure.Invalid},
	} {
		records := prompts(tc.prompts+tc.estimated, tc.off)
		for i := range tc.estimated {
			rec := &records[tc.prompts+i]
			rec.Counts.Input = trace.Some(7)
			rec.Extra = []byte(`{"estimated": ["input_length"], "text_input": "a"}`)
		}
		r := compute(t, measure.Options{}, records...)
		if r.Verdict.Level != tc.want || r.Lengths.Prompts != tc.prompts || r.Lengths.PromptsOff != tc.off || r.Lengths.Estimated != tc.estimated {
			t.Errorf("%s: %v, %+v", name, r.Verdict, r.Lengths)
		}
		if want := 10*tc.prompts + tc.off + 7*tc.estimated; r.Input != want {
			t.Errorf("%s: %d input tokens, want %d", name, r.Input, want)
		}
	}
}
