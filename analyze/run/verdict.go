package run

import (
	"fmt"

	"moontide/replay/runfile"
)

// Level says how far the numbers of a run can be believed.
type Level int

// The levels, from best to worst.
const (
	Valid   Level = iota // the client did not matter
	Suspect              // look at the evidence first
	Invalid              // the numbers are not the server's
)

// String is the level as reports print it.
func (l Level) String() string { return [...]string{"VALID", "SUSPECT", "INVALID"}[l] }

// Verdict is the level and all that was weighed.
type Verdict struct {
	Level    Level
	Evidence []Evidence
}

// Evidence is one thing that was looked at.
type Evidence struct {
	Level Level
	Text  string
}

// DefaultThresholds are those of a run that names no others. A run is INVALID
// above a threshold and SUSPECT from a fifth of it on. For lateness the threshold
// is the larger of MaxLagMS and MaxLagShare of the median TTFT.
var DefaultThresholds = runfile.Thresholds{MaxLagMS: 10, MaxLagShare: 0.05, MaxPromptsOff: 0.01}

const suspectPart = 5

func withDefaults(t runfile.Thresholds) runfile.Thresholds {
	d := DefaultThresholds
	for _, of := range []struct {
		given *float64
		other float64
	}{{&t.MaxLagMS, d.MaxLagMS}, {&t.MaxLagShare, d.MaxLagShare}, {&t.MaxPromptsOff, d.MaxPromptsOff}} {
		if *of.given == 0 {
			*of.given = of.other
		}
	}
	return t
}

// templateSlack are the tokens of a chat template that every prompt may share
// and no trace knows of.
const templateSlack = 64

// judge weighs a result. It is a pure function of what was measured.
func judge(r *Result) Verdict {
	var v Verdict
	if r.Completed == 0 {
		v.note(Invalid, "no request succeeded")
	} else if r.Failed > 0 {
		v.note(Valid, "%d of %d requests failed", r.Failed, r.Completed+r.Failed)
	}
	if r.Virtual {
		v.note(Valid, "no client took part, so client lag is 0 by construction")
	} else {
		v.weighLateness(r)
	}
	v.weighLengths(r)
	v.weighCached(r)
	switch {
	case r.Virtual && r.OfferedRate.Set:
		v.note(Valid, "requests were offered at %.2f/s; each that had a slot was sent when it was due, by construction", r.OfferedRate.Value)
	case r.OfferedRate.Set && r.AchievedRate.Set:
		v.note(Valid, "requests were offered at %.2f/s and sent at %.2f/s", r.OfferedRate.Value, r.AchievedRate.Value)
	}
	return v
}

func (v *Verdict) note(level Level, format string, args ...any) {
	v.Level = max(v.Level, level)
	v.Evidence = append(v.Evidence, Evidence{level, fmt.Sprintf(format, args...)})
}

// weighLateness judges the client in sending and in reading.
//
// How late it reads does no harm by itself where the kernel stamps what
// arrives: in lock-step the last of ten thousand streams is read a tenth of a
// second late, with an instant that is right to microseconds. What spoils an
// instant is to read at once what came apart, for the kernel's stamp is that of
// the last. So the merged chunks judge then, TTFT by the first chunks of
// requests and ITL by all chunks; the delay of the reads judges where the client
// stamps, for more than the hundredth of the requests that p99 leaves out.
func (v *Verdict) weighLateness(r *Result) {
	limit := r.lateness(r.TTFT)
	late := func(what string, p99 float64) {
		v.note(grade(p99, limit), "%s at p99 is %.2f ms; the run is INVALID above %.2f ms", what, p99, limit)
	}
	if r.ClientLag.Count > 0 {
		late("client lag", r.ClientLag.Quantile(0.99))
	}
	switch {
	case 100*r.StampedByClient > r.StampedByClient+r.StampedByKernel:
		v.weighClientStamps(r, limit, late)
	case r.ReadDelay.Reads > 0:
		v.note(Valid, "read delay at p99 is %.2f ms, which is not in the kernel's stamps", r.ReadDelay.P99MS)
	case r.StampedByKernel > 0:
		v.note(Valid, "read delay is not in the record: the run did not end")
	}
	if r.StampedByKernel > 0 {
		v.weighMerges(r, late)
	}
	v.weighClient(r, limit)
}

// lateness is by how much the client may be late where a latency has some
// distribution, in milliseconds.
func (r *Result) lateness(latency interface{ Quantile(float64) float64 }) float64 {
	return max(r.Thresholds.MaxLagMS, r.Thresholds.MaxLagShare*latency.Quantile(0.5))
}

// weighClientStamps judges instants that the client took as it read, by what is
// known of how late it reads: of other reads, or of its goroutines, which is a
// hint.
func (v *Verdict) weighClientStamps(r *Result, limit float64, late func(string, float64)) {
	c := &r.Observed.Client
	switch {
	case r.ReadDelay.Reads > 0:
		late(fmt.Sprintf("the client stamped the arrivals of %d requests as it read them; read delay", r.StampedByClient), r.ReadDelay.P99MS)
	case c.Samples > 0:
		waited := c.SchedMS.Quantile(often)
		v.note(hint(waited >= limit/suspectPart), "the client stamped the arrivals of %d requests as it read them; its goroutines waited up to %.2f ms at p99 in 9 of 10 seconds; the run is SUSPECT from %.2f ms on",
			r.StampedByClient, waited, limit/suspectPart)
	default:
		v.note(Valid, "the client stamped the arrivals of %d requests as it read them; how late that was is not known", r.StampedByClient)
	}
}

// weighMerges judges what the client read at once. A run that did not end only
// tells the worst instant of each request.
func (v *Verdict) weighMerges(r *Result, late func(string, float64)) {
	by := fmt.Sprintf("the kernel stamped the arrivals of %d requests; ", r.StampedByKernel)
	m := r.Merges
	if m.Chunks == 0 {
		late(by+"their blur, from reading late,", r.MaxStampError.Quantile(0.99))
		return
	}
	late(by+"by how much reading late may have lengthened TTFT", r.FirstStampError.Quantile(0.99))
	limit := r.lateness(r.ITL)
	v.note(grade(m.P99MS, limit), "%d of %d token chunks were read together with the next; how late that may have made a chunk at p99 is %.2f ms; the run is INVALID above %.2f ms",
		m.Merged, m.Chunks, m.P99MS, limit)
}

// A client that has more than this share of the machine in more than a tenth of
// the seconds may be late for want of processors.
const (
	busy  = 0.8
	often = 0.9
)

// weighClient tells what may have made the client late. None of it spoils a
// number by itself, so a run is at most SUSPECT.
func (v *Verdict) weighClient(r *Result, limit float64) {
	c := &r.Observed.Client
	if c.Samples == 0 {
		return
	}
	v.note(hint(c.MachineShare.Quantile(often) > busy), "the client took %.2f processors; in 9 of 10 seconds up to %.0f %% of the machine; the run is SUSPECT above %.0f %%",
		c.CPU, 100*c.MachineShare.Quantile(often), 100*busy)
	if c.MachineBusy.Max > 0 {
		v.note(Valid, "the machine's processors worked %.0f %% of the time, for whomever, and %.0f %% in the busiest second", 100*c.MachineBusy.Mean, 100*c.MachineBusy.Max)
	}
	v.note(hint(c.GCPauseMaxMS > limit), "the longest of the client's %d pauses for garbage is %.2f ms; its goroutines waited %.2f ms at p99 in the worst second",
		c.GCPauses, c.GCPauseMaxMS, c.SchedMS.Max)
}

// hint is the level of a bad sign.
func hint(bad bool) Level {
	if bad {
		return Suspect
	}
	return Valid
}

func (v *Verdict) weighLengths(r *Result) {
	l := r.Lengths
	if l.Prompts > 0 {
		share := float64(l.PromptsOff) / float64(l.Prompts)
		meant := "the trace's ISL"
		if l.Template > 0 {
			meant += fmt.Sprintf(" and the %d tokens of a template", l.Template)
		}
		v.note(grade(share, r.Thresholds.MaxPromptsOff), "%d of %d prompts differ from %s by more than 1 %% in the server's count", l.PromptsOff, l.Prompts, meant)
	} else if r.Completed > l.Estimated {
		v.note(Suspect, "the server did not count the prompt tokens, so their lengths are not proven")
	}
	if l.Estimated > 0 {
		v.note(Valid, "%d prompts are texts whose ISL the trace only estimates, so the server's count of them is not compared", l.Estimated)
	}
	if l.Answers > 0 {
		v.note(Valid, "%d of %d answers are shorter than the trace's OSL, %d longer", l.AnswersShorter, l.Answers, l.AnswersLonger)
	}
}

// weighCached looks for what an earlier run left in the server's cache. All that
// was cached may well be less than the trace explains, since most runs miss some,
// and yet be more than some requests can have found by themselves.
func (v *Verdict) weighCached(r *Result) {
	p := &r.Cache.Prediction
	if r.Cached.Set && r.Cache.Explained.Set {
		cached, explained := r.Cached.Value, r.Cache.Explained.Value
		template := max(templateSlack, p.TemplateTokens)
		v.note(hint(cached > explained+template*r.Cache.Requests), "%d prompt tokens were cached; the trace explains up to %d", cached, explained)
	}
	// Without a count of the prompts, a template is not told from a warm cache.
	if warm := p.Causes[Warm]; r.Lengths.Prompts > 0 && warm.Requests > 0 {
		v.note(Suspect, "%d of %d requests found %d tokens cached that no request of the run can have put there: the cache was warm", warm.Requests, p.Requests, warm.Tokens)
	}
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
