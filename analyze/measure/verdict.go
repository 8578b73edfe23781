package measure

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// Level is the trustworthiness of a run's numbers, from best to worst.
type Level int

const (
	Valid   Level = iota // every check passed
	Suspect              // check the evidence first
	Invalid              // the numbers do not describe the server under the intended load
)

// String returns the level as printed in reports.
func (l Level) String() string { return [...]string{"VALID", "SUSPECT", "INVALID"}[l] }

// Verdict is the level of a run and the evidence for it.
type Verdict struct {
	Level    Level
	Evidence []Evidence
}

// Reasons returns the evidence that determined the level.
func (v Verdict) Reasons() (texts []string) {
	for _, e := range v.Evidence {
		if e.Level == v.Level {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// Evidence is the result of one check.
type Evidence struct {
	Check string // stable name, such as client_lag
	Level Level
	Text  string // value, limit and, if it was crossed, likely cause and remedy
}

// The checks for a cache with contents from before the run.
const (
	CachedCheck    = "cached"     // more tokens were cached than the trace explains
	WarmCacheCheck = "warm_cache" // requests hit what no request of the run can have cached
)

// DefaultThresholds are used for thresholds that a run does not set. A run is
// INVALID above a threshold and SUSPECT from a fifth of it. The threshold for
// client lag is the larger of MaxLagMS and MaxLagShare of the median TTFT.
var DefaultThresholds = runfile.Thresholds{MaxLagMS: 10, MaxLagShare: 0.05, MaxPromptsOff: 0.01, MaxAnswersOff: 0.01, MaxFailed: 0.05}

// Thresholds that cannot be set, as shares.
const (
	maxBadRecords   = 0.01 // lost, repeated or impossible records
	maxClientFailed = 0.01 // requests that the client could not send
	maxContradicted = 0.05 // answers whose stream contradicts the server's token count
	maxRateOff      = 0.05 // difference of the offered and the sent request rate
	maxUnstreamed   = 0.05 // long answers that arrived at one instant: SUSPECT from a fifth, never INVALID
)

const suspectPart = 5

func withDefaults(t runfile.Thresholds) runfile.Thresholds {
	d := DefaultThresholds
	return runfile.Thresholds{
		MaxLagMS:      cmp.Or(t.MaxLagMS, d.MaxLagMS),
		MaxLagShare:   cmp.Or(t.MaxLagShare, d.MaxLagShare),
		MaxPromptsOff: cmp.Or(t.MaxPromptsOff, d.MaxPromptsOff),
		MaxAnswersOff: cmp.Or(t.MaxAnswersOff, d.MaxAnswersOff),
		MaxFailed:     cmp.Or(t.MaxFailed, d.MaxFailed),
	}
}

// templateSlack is the number of chat template tokens that all prompts may share.
const templateSlack = 64

func judge(r *Result) Verdict {
	var v Verdict
	v.checkParts(r)
	v.checkRequests(r)
	v.checkCached(r)
	v.checkLoad(r)
	return v
}

// checkRequests checks each request by itself.
func (v *Verdict) checkRequests(r *Result) {
	v.checkFailures(r)
	if r.Virtual {
		v.note("client_lag", Valid, "virtual time: no client, so client lag is 0")
	} else {
		v.checkLateness(r)
	}
	v.checkPrompts(r)
	v.checkAnswers(r)
	v.checkTokenCounts(r)
	v.checkStreaming(r)
}

func (v *Verdict) note(check string, level Level, format string, args ...any) {
	v.Level = max(v.Level, level)
	v.Evidence = append(v.Evidence, Evidence{check, level, fmt.Sprintf(format, args...)})
}

// limits are the values from which a check is SUSPECT and above which it is INVALID.
type limits struct{ suspect, invalid float64 }

// limit returns the limits for a threshold: SUSPECT from a fifth of it.
func limit(threshold float64) limits { return limits{threshold / suspectPart, threshold} }

// any makes every value above 0 SUSPECT.
func (l limits) any() limits { return limits{math.SmallestNonzeroFloat64, l.invalid} }

func (l limits) grade(value float64) Level {
	switch {
	case value > l.invalid:
		return Invalid
	case value >= l.suspect:
		return Suspect
	}
	return Valid
}

// share checks the share of n in all. what describes n, advice is the remedy.
func (v *Verdict) share(check string, n, all int, l limits, what, advice string) {
	value := float64(n) / float64(max(all, 1))
	level := l.grade(value)
	text := fmt.Sprintf("%d of %d %s", n, all, what)
	switch {
	case level == Valid:
		v.note(check, level, "%s", text)
	case l.suspect == math.SmallestNonzeroFloat64:
		v.note(check, level, "%s (%s, INVALID above %s): %s", text, percent(value), percent(l.invalid), advice)
	default:
		v.note(check, level, "%s (%s, SUSPECT from %s, INVALID above %s): %s", text, percent(value), percent(l.suspect), percent(l.invalid), advice)
	}
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// checkFailures checks for requests that are missing from the results: without a record,
// failed, never sent by the client, and later turns that were not sent. Requests canceled
// by the user are not failures, but latencies without them are too low.
func (v *Verdict) checkFailures(r *Result) {
	ended, outside := r.Completed+r.Failed+r.Abandoned.Requests, r.FailedOutside
	own, canceled := r.Errors[replay.ClientFault], r.Errors[replay.Canceled]
	records, failed := limit(maxBadRecords).any(), limit(r.Thresholds.MaxFailed)
	if r.Completed == 0 {
		v.note("failed", Invalid, "no request succeeded")
	}
	for _, c := range []struct {
		check        string
		n, all       int
		limits       limits
		what, advice string
	}{
		{"records", r.Unreadable, r.Records, records, "records cannot be read",
			fmt.Sprintf("their requests are missing from all results; restore the file from a copy or run again; first error: %v", r.FirstUnreadable)},
		{"records", r.Missing, r.Sent, records, "sent requests have no record",
			"they are missing from all results: they were in flight when the run was killed, or the record was truncated; resume the run or run again"},
		{"records", r.Impossible, r.Records, records, "records have contradictory times",
			"an answer cannot arrive before its request is sent; restore the file from a copy or run again"},
		{"records", r.Repeated, r.Records, records, "records are duplicates or belong to another trace",
			"their requests are included in the results; restore the file from a copy or run again"},
		{"failed", r.Failed - own - canceled, ended, failed, "requests failed",
			"latencies cover only the other requests; most common: " + r.commonFailure()},
		{"client_failed", own, ended, limit(maxClientFailed).any(), "requests were not sent because of the client",
			"first error: " + r.Examples[replay.ClientFault] + "; if connections failed, raise the open file limit or the local port range, or check the host name"},
		{"failed_outside", outside, ended + outside, failed, "requests failed outside the measurement window",
			"the window does not represent the run"},
		{"skipped", r.Skipped, ended + r.Skipped, failed, "requests were not sent because an earlier turn of their session failed",
			"the server did not get the load of the trace; find out why these turns failed"},
	} {
		if c.n > 0 {
			v.share(c.check, c.n, c.all, c.limits, c.what, c.advice)
		}
	}
	if canceled > 0 {
		share := float64(canceled) / float64(ended)
		v.note("canceled", hint(share >= failed.suspect), "%d of %d requests were in flight when the run was stopped (%s, SUSPECT from %s): latencies cover only the faster ones",
			canceled, ended, percent(share), percent(failed.suspect))
	}
	if n := r.Abandoned.Requests; n > 0 {
		v.note("abandoned", Valid, "%d of %d requests (%s) were abandoned by the client: latencies cover only the others",
			n, ended, percent(float64(n)/float64(ended)))
	}
}

// commonFailure names the most common class of failures on the server's side, with
// an example.
func (r *Result) commonFailure() string {
	var class replay.Class
	for _, c := range slices.Sorted(maps.Keys(r.Errors)) {
		if c != replay.ClientFault && c != replay.Canceled && r.Errors[c] > r.Errors[class] {
			class = c
		}
	}
	if example := r.Examples[class]; example != "" {
		return fmt.Sprintf("%s, such as %q", class, example)
	}
	return string(class)
}

// checkLateness checks how late the client sent requests and read answers. If the kernel
// timestamps arrivals, late reads are harmless except for merges, which return data that
// arrived separately with one timestamp. If the client timestamps more than 1 % of the
// requests, the share that p99 ignores, the read delay is checked.
func (v *Verdict) checkLateness(r *Result) {
	limit := r.latenessLimit(r.TTFT)
	if r.ClientLag.Count > 0 {
		v.late(r, "client_lag", "client lag", r.ClientLag.Quantile(0.99), limit)
	}
	switch {
	case 100*r.StampedByClient > r.StampedByClient+r.StampedByKernel:
		v.checkClientStamps(r, limit)
	case r.ReadDelay.Reads > 0:
		v.note("read_delay", Valid, "read delay p99 %.2f ms, corrected by kernel timestamps", r.ReadDelay.P99MS)
	case r.StampedByKernel > 0:
		v.note("read_delay", Valid, "read delay unknown: the run did not end")
	}
	if r.StampedByKernel > 0 {
		v.checkMerges(r, limit)
	}
	v.noteClient(r)
}

// late checks a delay at p99, in milliseconds.
func (v *Verdict) late(r *Result, check, what string, p99 float64, l limits) {
	if level := l.grade(p99); level == Valid {
		v.note(check, level, "%s p99 %.2f ms (INVALID above %.2f ms)", what, p99, l.invalid)
	} else {
		v.note(check, level, "%s p99 %.2f ms (SUSPECT from %.2f ms, INVALID above %.2f ms): %suse a larger client machine or fewer streams",
			what, p99, l.suspect, l.invalid, r.latenessCause(l.suspect))
	}
}

// latenessLimit returns the limits of the client's lateness for a latency, in milliseconds.
func (r *Result) latenessLimit(latency stats.Sample) limits {
	return limit(max(r.Thresholds.MaxLagMS, r.Thresholds.MaxLagShare*latency.Quantile(0.5)))
}

// latenessCause returns the likely causes of a client lag above lateMS, or "".
func (r *Result) latenessCause(lateMS float64) string {
	const busy = 0.8 // of all CPU cores
	c, causes := &r.Samples.Client, []string(nil)
	if share := c.MachineBusy.Quantile(0.9); share > busy {
		causes = append(causes, fmt.Sprintf("CPU was %.0f %% busy in the busiest tenth of the run", 100*share))
	} else if share := c.MachineShare.Quantile(0.9); share > busy {
		causes = append(causes, fmt.Sprintf("the client used %.0f %% of the CPU in the busiest tenth of the run", 100*share))
	}
	if c.GCPauseMaxMS > lateMS {
		causes = append(causes, fmt.Sprintf("a GC pause took %.2f ms", c.GCPauseMaxMS))
	}
	if len(causes) == 0 && c.SchedMS.Max > lateMS {
		causes = append(causes, fmt.Sprintf("goroutines waited up to %.2f ms for a CPU", c.SchedMS.Max))
	}
	if len(causes) == 0 {
		return ""
	}
	return strings.Join(causes, ", ") + "; "
}

// checkClientStamps checks timestamps that the client took on reading: by the read
// delay of other reads or, as a weaker hint, by the scheduling delay.
func (v *Verdict) checkClientStamps(r *Result, l limits) {
	c := &r.Samples.Client
	switch {
	case r.ReadDelay.Reads > 0:
		v.late(r, "read_delay", fmt.Sprintf("%d responses timestamped by the client; read delay", r.StampedByClient), r.ReadDelay.P99MS, l)
	case c.Samples > 0:
		waited := c.SchedMS.Quantile(0.9)
		v.note("read_delay", hint(waited >= l.suspect), "%d responses timestamped by the client; scheduling delay p99 up to %.2f ms in 9 of 10 seconds (SUSPECT from %.2f ms)",
			r.StampedByClient, waited, l.suspect)
	default:
		v.note("read_delay", Suspect, "%d responses timestamped by the client; read delay unknown", r.StampedByClient)
	}
}

// checkMerges checks for data that arrived separately and was read at once. If the
// run did not end, only the worst timestamp of each request is known.
func (v *Verdict) checkMerges(r *Result, l limits) {
	by := fmt.Sprintf("%d responses timestamped by the kernel; ", r.StampedByKernel)
	m := r.Merges
	if m.Chunks < uint64(r.ChunksByKernel) { // a part of the run was killed
		v.late(r, "stamp_error", by+"timestamp error from late reads", r.MaxStampError.Quantile(0.99), l)
	}
	if m.Chunks == 0 {
		return
	}
	v.late(r, "first_stamp_error", by+"TTFT error from late reads", r.FirstStampError.Quantile(0.99), l)
	v.late(r, "stamp_error", fmt.Sprintf("%d of %d token chunks were read in one batch with the next; timestamp error", m.Merged, m.Chunks), m.P99MS, r.latenessLimit(r.ITL))
}

// noteClient notes the load on the client, which may explain a late client.
func (v *Verdict) noteClient(r *Result) {
	c := &r.Samples.Client
	if c.Samples == 0 {
		return
	}
	v.note("client_cpu", Valid, "client used %.2f CPU cores, up to %.0f %% of the machine in 9 of 10 seconds", c.CPU, 100*c.MachineShare.Quantile(0.9))
	if c.MachineBusy.Max > 0 {
		v.note("machine_cpu", Valid, "CPU %.0f %% busy (all processes), %.0f %% in the busiest second", 100*c.MachineBusy.Mean, 100*c.MachineBusy.Max)
	}
	pauses := "no GC pauses"
	if c.GCPauses > 0 {
		pauses = fmt.Sprintf("longest GC pause %.2f ms (%d in total)", c.GCPauseMaxMS, c.GCPauses)
	}
	v.note("client_pauses", Valid, "%s; scheduling delay p99 %.2f ms in the worst second", pauses, c.SchedMS.Max)
}

// hint returns SUSPECT if bad, else VALID.
func hint(bad bool) Level {
	if bad {
		return Suspect
	}
	return Valid
}

// checkCached looks for cache contents from before the run, in total and by request,
// because misses elsewhere can hide them in the total.
func (v *Verdict) checkCached(r *Result) {
	p := &r.Cache.Prediction
	if r.Cached.Set && r.Cache.MaxHits.Set {
		cached, most := r.Cached.Value, r.Cache.MaxHits.Value
		template := max(templateSlack, p.TemplateTokens)
		if limit := most + template*r.Cache.Requests; cached > limit {
			v.note(CachedCheck, Suspect, "%d prompt tokens cached; the trace explains up to %d (SUSPECT above %d, with a chat template): the cache was warm before the run; restart the server or change the salt", cached, most, limit)
		} else {
			v.note(CachedCheck, Valid, "%d prompt tokens cached; the trace explains up to %d", cached, most)
		}
	}
	if n := r.Samples.Server.Restarts; n > 0 {
		v.note("server_restart", Suspect, "the server restarted during the run (%d times, by its metrics) and lost its cache; find out why and run again", n)
	}
	// Without the server's count of prompt tokens, a template looks like a warm cache.
	if warm := p.Causes[Warm]; r.Lengths.Prompts > 0 && warm.Requests > 0 {
		v.note(WarmCacheCheck, Suspect, "warm cache: %d of %d requests hit %d tokens that no request of this run can have cached; restart the server or change the salt", warm.Requests, p.Requests, warm.Tokens)
	}
}

// LatenessSoFar returns the level of a client lag at p99 during a run, and the
// limit above which the run is INVALID.
func LatenessSoFar(lag, medianTTFT time.Duration, t runfile.Thresholds) (Level, time.Duration) {
	t = withDefaults(t)
	l := limit(max(t.MaxLagMS, t.MaxLagShare*trace.MS(medianTTFT)))
	return l.grade(trace.MS(lag)), time.Duration(l.invalid * float64(time.Millisecond))
}
