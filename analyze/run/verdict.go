package run

import (
	"cmp"
	"fmt"
	"time"

	"moontide/replay/runfile"
	"moontide/trace/stats"
)

// Level is the trustworthiness of a run's numbers.
type Level int

// The levels, from best to worst.
const (
	Valid   Level = iota // the client did not influence the numbers
	Suspect              // check the evidence first
	Invalid              // the numbers do not describe the server
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
	Level Level
	Text  string
}

// DefaultThresholds are used for thresholds that a run does not set. A run is
// INVALID above a threshold and SUSPECT above a fifth of it. Client lag may be up to
// the larger of MaxLagMS and MaxLagShare of the median TTFT.
var DefaultThresholds = runfile.Thresholds{MaxLagMS: 10, MaxLagShare: 0.05, MaxPromptsOff: 0.01}

const suspectPart = 5

func withDefaults(t runfile.Thresholds) runfile.Thresholds {
	d := DefaultThresholds
	return runfile.Thresholds{
		MaxLagMS:      cmp.Or(t.MaxLagMS, d.MaxLagMS),
		MaxLagShare:   cmp.Or(t.MaxLagShare, d.MaxLagShare),
		MaxPromptsOff: cmp.Or(t.MaxPromptsOff, d.MaxPromptsOff),
	}
}

// templateSlack is the number of chat template tokens that all prompts may share.
const templateSlack = 64

func judge(r *Result) Verdict {
	var v Verdict
	if r.Completed == 0 {
		v.note(Invalid, "no request succeeded")
	} else if r.Failed > 0 {
		v.note(Valid, "%d of %d requests failed", r.Failed, r.Completed+r.Failed)
	}
	if r.Virtual {
		v.note(Valid, "virtual time: no client, so client lag is 0")
	} else {
		v.checkLateness(r)
	}
	v.checkLengths(r)
	v.checkCached(r)
	switch {
	case r.Virtual && r.OfferedRate.Set:
		v.note(Valid, "virtual time: offered %.2f req/s; every request with a slot was sent when due", r.OfferedRate.Value)
	case r.OfferedRate.Set && r.AchievedRate.Set:
		v.note(Valid, "offered %.2f req/s, sent %.2f req/s", r.OfferedRate.Value, r.AchievedRate.Value)
	}
	return v
}

func (v *Verdict) note(level Level, format string, args ...any) {
	v.Level = max(v.Level, level)
	v.Evidence = append(v.Evidence, Evidence{level, fmt.Sprintf(format, args...)})
}

// checkLateness checks how late the client sent requests and read answers. Late
// reads are harmless if the kernel timestamps arrivals, unless one read returned
// data that arrived separately and got one timestamp: such merges are checked. The
// read delay is checked if the client timestamps more than 1 % of requests, the
// share that p99 ignores.
func (v *Verdict) checkLateness(r *Result) {
	limit := r.latenessLimit(r.TTFT)
	if r.ClientLag.Count > 0 {
		v.late("client lag", r.ClientLag.Quantile(0.99), limit)
	}
	switch {
	case 100*r.StampedByClient > r.StampedByClient+r.StampedByKernel:
		v.checkClientStamps(r, limit)
	case r.ReadDelay.Reads > 0:
		v.note(Valid, "read delay p99 %.2f ms, corrected by kernel timestamps", r.ReadDelay.P99MS)
	case r.StampedByKernel > 0:
		v.note(Valid, "read delay unknown: the run did not end")
	}
	if r.StampedByKernel > 0 {
		v.checkMerges(r, limit)
	}
	v.checkClient(r, limit)
}

// late reports a delay at p99 in milliseconds, with a remedy if it is too large.
func (v *Verdict) late(what string, p99, limit float64) {
	if level := grade(p99, limit); level == Valid {
		v.note(level, "%s p99 %.2f ms (INVALID above %.2f ms)", what, p99, limit)
	} else {
		v.note(level, "%s p99 %.2f ms (SUSPECT from %.2f ms, INVALID above %.2f ms): use a larger client machine or fewer streams", what, p99, limit/suspectPart, limit)
	}
}

// latenessLimit returns the limit of lateness for a latency, in milliseconds.
func (r *Result) latenessLimit(latency stats.Sample) float64 {
	return max(r.Thresholds.MaxLagMS, r.Thresholds.MaxLagShare*latency.Quantile(0.5))
}

// checkClientStamps checks timestamps taken on reading: by the read delay of other
// reads or, as a weaker hint, by the scheduling delay.
func (v *Verdict) checkClientStamps(r *Result, limit float64) {
	c := &r.Samples.Client
	switch {
	case r.ReadDelay.Reads > 0:
		v.late(fmt.Sprintf("%d responses timestamped by the client; read delay", r.StampedByClient), r.ReadDelay.P99MS, limit)
	case c.Samples > 0:
		waited := c.SchedMS.Quantile(often)
		v.note(hint(waited >= limit/suspectPart), "%d responses timestamped by the client; scheduling delay p99 up to %.2f ms in 9 of 10 seconds (SUSPECT from %.2f ms)",
			r.StampedByClient, waited, limit/suspectPart)
	default:
		v.note(Valid, "%d responses timestamped by the client; read delay unknown", r.StampedByClient)
	}
}

// checkMerges checks for merged reads. If the run did not end, only the worst
// timestamp of each request is known.
func (v *Verdict) checkMerges(r *Result, limit float64) {
	by := fmt.Sprintf("%d responses timestamped by the kernel; ", r.StampedByKernel)
	m := r.Merges
	if m.Chunks == 0 {
		v.late(by+"timestamp error from late reads", r.MaxStampError.Quantile(0.99), limit)
		return
	}
	v.late(by+"TTFT error from late reads", r.FirstStampError.Quantile(0.99), limit)
	v.late(fmt.Sprintf("%d of %d token chunks were read in one batch with the next; timestamp error", m.Merged, m.Chunks), m.P99MS, r.latenessLimit(r.ITL))
}

// The client may lack CPU if it uses more than the share busy of the machine in more
// than a tenth of the seconds.
const (
	busy  = 0.8
	often = 0.9
)

// checkClient looks for causes of a late client, which alone are only SUSPECT.
func (v *Verdict) checkClient(r *Result, limit float64) {
	c := &r.Samples.Client
	if c.Samples == 0 {
		return
	}
	v.note(hint(c.MachineShare.Quantile(often) > busy), "client used %.2f CPU cores, up to %.0f %% of the machine in 9 of 10 seconds (SUSPECT above %.0f %%)",
		c.CPU, 100*c.MachineShare.Quantile(often), 100*busy)
	if c.MachineBusy.Max > 0 {
		v.note(Valid, "CPU %.0f %% busy (all processes), %.0f %% in the busiest second", 100*c.MachineBusy.Mean, 100*c.MachineBusy.Max)
	}
	pauses := "no GC pauses"
	if c.GCPauses > 0 {
		pauses = fmt.Sprintf("longest GC pause %.2f ms (%d in total)", c.GCPauseMaxMS, c.GCPauses)
	}
	v.note(hint(c.GCPauseMaxMS > limit), "%s; scheduling delay p99 %.2f ms in the worst second", pauses, c.SchedMS.Max)
}

// hint returns SUSPECT for a bad sign.
func hint(bad bool) Level {
	if bad {
		return Suspect
	}
	return Valid
}

func (v *Verdict) checkLengths(r *Result) {
	l := r.Lengths
	if l.Prompts > 0 {
		share := float64(l.PromptsOff) / float64(l.Prompts)
		meant := "the trace's ISL"
		if l.Template > 0 {
			meant += fmt.Sprintf(" plus %d template tokens", l.Template)
		}
		v.note(grade(share, r.Thresholds.MaxPromptsOff), "%d of %d prompts differ from %s by more than 1 %% (server's count)", l.PromptsOff, l.Prompts, meant)
	} else if r.Completed > l.Estimated {
		v.note(Suspect, "prompt lengths are unverified: the server does not report prompt tokens")
	}
	if l.Estimated > 0 {
		v.note(Valid, "%d prompts not compared with the server's count: the trace only estimates their ISL", l.Estimated)
	}
	if l.Answers > 0 {
		v.note(Valid, "%d of %d answers are shorter than the trace's OSL, %d longer", l.AnswersShorter, l.Answers, l.AnswersLonger)
	}
}

// checkCached looks for cache contents from before the run, in total and by request:
// most runs miss some of the hits that the trace explains.
func (v *Verdict) checkCached(r *Result) {
	p := &r.Cache.Prediction
	if r.Cached.Set && r.Cache.MaxHits.Set {
		cached, most := r.Cached.Value, r.Cache.MaxHits.Value
		template := max(templateSlack, p.TemplateTokens)
		v.note(hint(cached > most+template*r.Cache.Requests), "%d prompt tokens cached; the trace explains up to %d", cached, most)
	}
	// Without the server's count of prompt tokens, a template looks like a warm cache.
	if warm := p.Causes[Warm]; r.Lengths.Prompts > 0 && warm.Requests > 0 {
		v.note(Suspect, "warm cache: %d of %d requests hit %d tokens that no request of this run can have cached; restart the server or change the salt", warm.Requests, p.Requests, warm.Tokens)
	}
}

// LatenessSoFar returns the level of a client lag at p99 during a run, and the limit
// above which it is INVALID.
func LatenessSoFar(lag, medianTTFT time.Duration, t runfile.Thresholds) (Level, time.Duration) {
	t = withDefaults(t)
	limit := max(t.MaxLagMS, t.MaxLagShare*ms(medianTTFT))
	return grade(ms(lag), limit), time.Duration(limit * float64(time.Millisecond))
}

// grade compares a value with the limit above which a run is INVALID.
func grade(value, limit float64) Level {
	switch {
	case value > limit:
		return Invalid
	case value >= limit/suspectPart:
		return Suspect
	}
	return Valid
}
