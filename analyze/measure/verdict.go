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

// Evidence is the result of one check.
type Evidence struct {
	Check string // its Key
	Level Level
	Text  string // value, limit and, if it was crossed, likely cause and remedy
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

// judge applies the checks to a run or, without those that need all parts, to a part.
func judge(r *Result, part bool) Verdict {
	var v Verdict
	for i := range checks {
		c := &checks[i]
		if part && !c.inPart || r.Virtual && c.live {
			continue
		}
		f := findings{Verdict: &v, check: c, limits: noLimits}
		if c.Limits != nil {
			f.limits = c.Limits(r.Thresholds)
		}
		if c.find != nil {
			c.find(&f, r)
		} else if n, all := c.share(r); all > 0 && (n > 0 || c.always) {
			f.share(r, n, all)
		}
	}
	return v
}

// DefaultThresholds are used for thresholds that a run does not set. A run is
// INVALID above a threshold and SUSPECT from a fifth of it. The threshold for
// client lag is the larger of MaxLagMS and MaxLagShare of the median TTFT.
var DefaultThresholds = runfile.Thresholds{MaxLagMS: 10, MaxLagShare: 0.05, MaxPromptsOff: 0.01, MaxAnswersOff: 0.01, MaxFailed: 0.05}

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

// Limits are the values from which a check is SUSPECT and above which it is INVALID.
type Limits struct{ Suspect, Invalid float64 }

// noLimits are those of evidence that is always VALID.
var noLimits = Limits{math.Inf(1), math.Inf(1)}

func fifth(threshold float64) Limits { return Limits{threshold / 5, threshold} }

// anyOf makes every value above 0 SUSPECT.
func anyOf(invalid float64) func(runfile.Thresholds) Limits {
	return func(runfile.Thresholds) Limits { return Limits{math.SmallestNonzeroFloat64, invalid} }
}

func suspectFrom(value float64) func(runfile.Thresholds) Limits {
	return func(runfile.Thresholds) Limits { return Limits{max(value, math.SmallestNonzeroFloat64), math.Inf(1)} }
}

func suspectOnly(of func(runfile.Thresholds) Limits) func(runfile.Thresholds) Limits {
	return func(t runfile.Thresholds) Limits { return Limits{of(t).Suspect, math.Inf(1)} }
}

func (l Limits) grade(value float64) Level {
	switch {
	case value > l.Invalid:
		return Invalid
	case value >= l.Suspect:
		return Suspect
	}
	return Valid
}

// text describes the limits.
func (l Limits) text(format func(float64) string) string {
	var all []string
	if l.Suspect > math.SmallestNonzeroFloat64 && !math.IsInf(l.Suspect, 1) {
		all = append(all, "SUSPECT from "+format(l.Suspect))
	}
	if !math.IsInf(l.Invalid, 1) {
		all = append(all, "INVALID above "+format(l.Invalid))
	}
	return strings.Join(all, ", ")
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }
func inMS(ms float64) string       { return fmt.Sprintf("%.2f ms", ms) }

// findings adds the evidence of a check to a verdict.
type findings struct {
	*Verdict
	check  *Check
	limits Limits
}

func (f *findings) note(level Level, format string, args ...any) {
	f.Level = max(f.Level, level)
	f.Evidence = append(f.Evidence, Evidence{f.check.Key, level, fmt.Sprintf(format, args...)})
}

// crossed adds evidence with its likely cause, if known, and the remedy.
func (f *findings) crossed(level Level, text, cause string) {
	if cause != "" {
		cause += "; "
	}
	f.note(level, "%s: %s%s", text, cause, f.check.Remedy)
}

// share adds the share of n in all, with limits and a remedy if they are crossed. If there is
// no limit to INVALID, it adds them always.
func (f *findings) share(r *Result, n, all int) {
	value, what := float64(n)/float64(all), f.check.What
	if f.check.text != nil {
		what = f.check.text(r)
	}
	level, text := f.limits.grade(value), fmt.Sprintf("%d of %d %s", n, all, what)
	if level == Valid && !math.IsInf(f.limits.Invalid, 1) {
		f.note(level, "%s", text)
		return
	}
	text += " (" + strings.TrimSuffix(percent(value)+", "+f.limits.text(percent), ", ") + "): " + f.check.Remedy
	if f.check.detail != nil {
		text += "; " + f.check.detail(r)
	}
	f.note(level, "%s", text)
}

// delay adds a delay in milliseconds.
func (f *findings) delay(text string, value float64, l Limits, cause string) {
	if level := l.grade(value); level != Valid {
		f.crossed(level, text+" ("+l.text(inMS)+")", cause)
	} else {
		f.note(level, "%s (INVALID above %s)", text, inMS(l.Invalid))
	}
}

// late adds a delay of the client at p99, in milliseconds.
func (f *findings) late(r *Result, what string, p99 float64, l Limits) {
	f.delay(fmt.Sprintf("%s p99 %s", what, inMS(p99)), p99, l, r.latenessCause(l.Suspect))
}

func (r *Result) ended() int { return r.Completed + r.Failed + r.Abandoned.Requests }

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

// promptsOff describes prompts of other lengths than in the trace.
func (l Lengths) promptsOff() string {
	text := "prompts differ from the trace's ISL"
	if l.Template > 0 {
		text += fmt.Sprintf(" plus %d template tokens", l.Template)
	}
	if text += " by more than 1 %"; l.AsText > 0 {
		text += " and a quarter of their answers as text"
	}
	return text + " (server's count)"
}

// answersOff returns the number of answers of the wrong length, which may be shorter unless
// enforced, and that of all.
func (l Lengths) answersOff(completed int) (off, all int) {
	off = l.AnswersLonger
	if l.Enforced {
		off += l.AnswersShorter
	}
	if l.Answers == 0 && off == 0 {
		return 0, 0
	}
	return off, max(cmp.Or(l.Answers, completed), off)
}

// latenessLimit returns the limits of the client's lateness for a latency, in milliseconds.
func (r *Result) latenessLimit(latency stats.Sample) Limits {
	return fifth(max(r.Thresholds.MaxLagMS, r.Thresholds.MaxLagShare*latency.Quantile(0.5)))
}

// LatenessSoFar returns the level of a client lag at p99 during a run.
func LatenessSoFar(lag, medianTTFT time.Duration, t runfile.Thresholds) Level {
	t = withDefaults(t)
	return fifth(max(t.MaxLagMS, t.MaxLagShare*trace.MS(medianTTFT))).grade(trace.MS(lag))
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
	return strings.Join(causes, ", ")
}

func (f *findings) clientLag(r *Result) {
	if r.Virtual {
		f.note(Valid, "virtual time: no client, so client lag is 0")
	} else if r.ClientLag.Count > 0 {
		f.late(r, "client lag", r.ClientLag.Quantile(0.99), r.latenessLimit(r.TTFT))
	}
}

// readDelay checks timestamps that the client took on reading, if it took more than 1 %, the
// share that p99 ignores: by the read delay of other reads or, as a weaker hint, by the
// scheduling delay. If the kernel timestamps arrivals, late reads are harmless.
func (f *findings) readDelay(r *Result) {
	c, l := &r.Samples.Client, r.latenessLimit(r.TTFT)
	if by := fmt.Sprintf("%d responses timestamped by the client; ", r.StampedByClient); 100*r.StampedByClient > r.StampedByClient+r.StampedByKernel {
		switch waited := c.SchedMS.Quantile(0.9); {
		case r.ReadDelay.Reads > 0:
			f.late(r, by+"read delay", r.ReadDelay.P99MS, l)
		case c.Samples > 0:
			f.note(min(l.grade(waited), Suspect), "%sscheduling delay p99 up to %.2f ms in 9 of 10 seconds (SUSPECT from %.2f ms)", by, waited, l.Suspect)
		default:
			f.note(Suspect, "%sread delay unknown", by)
		}
		return
	}
	switch {
	case r.ReadDelay.Reads > 0:
		f.note(Valid, "read delay p99 %.2f ms, corrected by kernel timestamps", r.ReadDelay.P99MS)
	case r.StampedByKernel > 0:
		f.note(Valid, "read delay unknown: the run did not end")
	}
}

// firstStampError and stampError check for data that arrived separately and was read at once:
// the kernel gives it one timestamp.
func (f *findings) firstStampError(r *Result) {
	if r.StampedByKernel > 0 && r.Merges.Chunks > 0 {
		f.late(r, r.byKernel()+"TTFT error from late reads", r.FirstStampError.Quantile(0.99), r.latenessLimit(r.TTFT))
	}
}

func (f *findings) stampError(r *Result) {
	m := r.Merges
	if r.StampedByKernel == 0 {
		return
	}
	if m.Chunks < uint64(r.ChunksByKernel) { // a part of the run was killed: only the worst timestamp of each request is known
		f.late(r, r.byKernel()+"timestamp error from late reads", r.MaxStampError.Quantile(0.99), r.latenessLimit(r.TTFT))
	}
	if m.Chunks > 0 {
		f.late(r, fmt.Sprintf("%d of %d token chunks were read in one batch with the next; timestamp error", m.Merged, m.Chunks), m.P99MS, r.latenessLimit(r.ITL))
	}
}

func (r *Result) byKernel() string {
	return fmt.Sprintf("%d responses timestamped by the kernel; ", r.StampedByKernel)
}

func (f *findings) clientPauses(r *Result) {
	c := &r.Samples.Client
	if c.Samples == 0 {
		return
	}
	pauses := "no GC pauses"
	if c.GCPauses > 0 {
		pauses = fmt.Sprintf("longest GC pause %.2f ms (%d in total)", c.GCPauseMaxMS, c.GCPauses)
	}
	f.note(Valid, "%s; scheduling delay p99 %.2f ms in the worst second", pauses, c.SchedMS.Max)
}

// templateSlack is the number of chat template tokens that all prompts may share.
const templateSlack = 64

// cached and warmCache look for cache contents from before the run, in total and by request,
// because misses elsewhere can hide them in the total.
func (f *findings) cached(r *Result) {
	if !r.Cached.Set || !r.Cache.MaxHits.Set {
		return
	}
	text := fmt.Sprintf("%d prompt tokens cached; the trace explains up to %d", r.Cached.Value, r.Cache.MaxHits.Value)
	most := r.Cache.MaxHits.Value + max(templateSlack, r.Cache.Prediction.TemplateTokens)*r.Cache.Requests
	if r.Cached.Value > most {
		f.crossed(Suspect, fmt.Sprintf("%s (SUSPECT above %d, with a chat template)", text, most), "")
	} else {
		f.note(Valid, "%s", text)
	}
}

// warmCache needs the server's count of prompt tokens: without it, a template looks like a
// warm cache.
func (f *findings) warmCache(r *Result) {
	if warm := r.Cache.Prediction.Causes[Warm]; r.Lengths.Prompts > 0 && warm.Requests > 0 {
		f.crossed(Suspect, fmt.Sprintf("warm cache: %d of %d requests hit %d tokens that no request of this run can have cached", warm.Requests, r.Cache.Prediction.Requests, warm.Tokens), "")
	}
}

func (f *findings) connectTime(r *Result) {
	if connect := r.ConnectTime.Quantile(0.99); f.limits.grade(connect) > Valid {
		f.crossed(Suspect, fmt.Sprintf("connect time p99 %s (%s)", inMS(connect), f.limits.text(inMS)), "")
	}
}

// sentRate compares the rates of due and sent requests, unless more than 1 % waited for a
// slot.
func (f *findings) sentRate(r *Result) {
	offered, sent, late := r.OfferedRate.Value, r.SentRate.Value, r.latenessLimit(r.TTFT)
	rates := fmt.Sprintf("offered %.2f req/s, sent %.2f req/s", offered, sent)
	apart := math.Abs(sent-offered) / offered
	switch level := f.limits.grade(apart); {
	case !r.OfferedRate.Set:
	case r.Virtual:
		f.note(Valid, "virtual time: offered %.2f req/s; all requests were sent as soon as they had a slot", offered)
	case r.Closed:
		f.note(Valid, "closed loop: sent %.2f req/s", sent)
	case !r.SentRate.Set || 100*r.Queued > r.QueueTime.Count,
		r.SendingLate <= late.Invalid && r.Unsent == 0, // a short run: the lag of its last request changes the rate
		level == Valid:
		f.note(Valid, "%s", rates)
	default:
		f.crossed(level, fmt.Sprintf("%s: %s apart (%s)", rates, percent(apart), f.limits.text(percent)), r.latenessCause(late.Suspect))
	}
}

// Pacing describes how a limit of requests in flight, or the end of earlier turns, delayed
// requests beyond the trace. It is "" if none waited longer than the client may be late.
func (r *Result) Pacing() string {
	p99 := r.QueueTime.Quantile(0.99)
	if r.Queued == 0 || p99 <= r.latenessLimit(r.TTFT).Invalid {
		return ""
	}
	by := "earlier turns of the sessions"
	if r.MaxConcurrency > 0 {
		by = fmt.Sprintf("a limit of %d in flight", r.MaxConcurrency)
	}
	return fmt.Sprintf("paced by %s: %.0f %% of requests waited, %.3g s at p99", by, 100*float64(r.Queued)/float64(r.QueueTime.Count), p99/1000)
}
