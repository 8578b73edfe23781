package serving

import "fmt"

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

// A run is INVALID above these and SUSPECT from a fifth of them on.
const (
	lagFloorMS     = 10.0 // client lag at p99 may be this much,
	lagShareOfTTFT = 0.05 // or this share of the median TTFT
	promptsOff     = 0.01 // share of prompts that are off by more than 1 %
	suspectPart    = 5
)

// templateSlack are the tokens of a chat template that every prompt shares
// and no trace knows of.
const templateSlack = 64

// judge weighs a result. It is a pure function of what was measured.
func judge(r *Result) Verdict {
	var v Verdict
	note := func(level Level, format string, args ...any) {
		v.Level = max(v.Level, level)
		v.Evidence = append(v.Evidence, Evidence{level, fmt.Sprintf(format, args...)})
	}
	if r.Completed == 0 {
		note(Invalid, "no request succeeded")
	} else if r.Failed > 0 {
		note(Valid, "%d of %d requests failed", r.Failed, r.Completed+r.Failed)
	}
	if r.ClientLag.Count > 0 {
		lag, limit := r.ClientLag.Quantile(0.99), lagFloorMS
		if r.TTFT.Count > 0 {
			limit = max(limit, lagShareOfTTFT*r.TTFT.Quantile(0.5))
		}
		note(grade(lag, limit), "client lag at p99 is %.2f ms; the run is INVALID above %.2f ms", lag, limit)
	}
	l := r.Lengths
	if l.Prompts > 0 {
		share := float64(l.PromptsOff) / float64(l.Prompts)
		note(grade(share, promptsOff), "%d of %d prompts differ from the trace's ISL by more than 1 %% in the server's count", l.PromptsOff, l.Prompts)
	} else if r.Completed > 0 {
		note(Suspect, "the server did not count the prompt tokens, so their lengths are not proven")
	}
	if l.Answers > 0 {
		note(Valid, "%d of %d answers are shorter than the trace's OSL, %d longer", l.AnswersShorter, l.Answers, l.AnswersLonger)
	}
	if r.Cached.Set && r.Cache.Explained.Set {
		cached, explained := r.Cached.Value, r.Cache.Explained.Value
		level := Valid
		if cached > explained+templateSlack*r.Cache.Requests {
			level = Suspect
		}
		note(level, "%d prompt tokens were cached; the trace explains up to %d", cached, explained)
	}
	if r.OfferedRate.Set && r.AchievedRate.Set {
		note(Valid, "requests were offered at %.2f/s and sent at %.2f/s", r.OfferedRate.Value, r.AchievedRate.Value)
	}
	return v
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
