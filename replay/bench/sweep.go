package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sweep is a plan of runs that differ in one thing, how much load there is:
// requests of one shape at one level after another, against each target.
type Sweep struct {
	Axis   Axis
	Levels []float64 // in the order in which they are driven, each once
	// Prompts is how many requests each run has; 0 goes by the level, see
	// [Sweep.Legs].
	Prompts int
	// Ceiling is how many requests may be in flight where the axis is a rate;
	// 0 is no limit.
	Ceiling int
	Targets []Target // at least one
}

// Axis is what differs between the levels of a sweep.
type Axis string

const (
	// Concurrency is the number of requests in flight: as one ends, the next
	// is sent.
	Concurrency Axis = "concurrency"
	// Rate is the number of requests that arrive a second, however many are in
	// flight.
	Rate Axis = "rate"
)

// Target is one of the deployments that a sweep compares.
type Target struct {
	Label string // "" for the only one
	URL   string // "" for the embedded endpoint
}

// Leg is one run of a sweep.
type Leg struct {
	// Name is the leg's own among all of a sweep, and good for a file:
	// concurrency-8, or baseline-rate-2.5 where targets have labels.
	Name           string
	Target         Target
	Axis           Axis
	Level          float64
	Prompts        int
	MaxConcurrency int // 0 is no limit
}

const (
	// promptsPerSlot is how often a request is sent for each one in flight: the
	// first and the last of them find a server that is not fully loaded.
	promptsPerSlot = 10
	// rateSeconds is how long requests arrive at a rate.
	rateSeconds = 60
	// fewestPrompts make a median.
	fewestPrompts = 10
)

// Legs are the runs in the order in which they are driven: all targets at the
// first level, then all at the next, so that targets are measured soon after
// each other. Where the sweep does not say how many prompts, a leg has ten for
// each request in flight, or a minute of them at its rate, and at least ten.
func (s Sweep) Legs() []Leg {
	var legs []Leg
	for _, level := range s.Levels {
		for _, target := range s.Targets {
			leg := Leg{Target: target, Axis: s.Axis, Level: level, Prompts: s.Prompts}
			leg.Name = fmt.Sprintf("%s-%s", s.Axis, FormatLevel(level))
			if target.Label != "" {
				leg.Name = target.Label + "-" + leg.Name
			}
			each := rateSeconds
			if leg.MaxConcurrency = s.Ceiling; s.Axis == Concurrency {
				leg.MaxConcurrency, each = int(level), promptsPerSlot
			}
			if leg.Prompts == 0 {
				leg.Prompts = max(fewestPrompts, int(math.Ceil(level*float64(each))))
			}
			legs = append(legs, leg)
		}
	}
	return legs
}

// String is the leg in words.
func (l Leg) String() string {
	what := fmt.Sprintf("%s %s", l.Axis, FormatLevel(l.Level))
	if l.Target.Label != "" {
		what = l.Target.Label + ", " + what
	}
	return what
}

// FormatLevel spells a level as people write it.
func FormatLevel(level float64) string { return strconv.FormatFloat(level, 'f', -1, 64) }

const (
	mostLevels      = 1000
	mostConcurrency = 1_000_000
	mostRate        = 1_000_000
)

// ParseLevels reads levels with commas between them: 1,2,4,8. A concurrency is
// a whole number.
func ParseLevels(axis Axis, text string) ([]float64, error) {
	var levels []float64
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		level, err := strconv.ParseFloat(part, 64)
		switch {
		case axis == Concurrency && !(err == nil && level >= 1 && level <= mostConcurrency && level == math.Trunc(level)):
			return nil, fmt.Errorf("%q is not a whole number from 1 to %d", part, mostConcurrency)
		case axis == Rate && !(err == nil && level > 0 && level <= mostRate):
			return nil, fmt.Errorf("%q is not a number above 0 and up to %d", part, mostRate)
		case slices.Contains(levels, level):
			return nil, fmt.Errorf("%s is there twice", part)
		case len(levels) == mostLevels:
			return nil, fmt.Errorf("more than %d levels", mostLevels)
		}
		levels = append(levels, level)
	}
	return levels, nil
}

// ParseTargets reads targets, each a URL or label=URL. Several need labels,
// which go into names of files: up to 40 letters, digits and -._, beginning
// with a letter or digit. None is the embedded endpoint.
func ParseTargets(texts []string) ([]Target, error) {
	var targets []Target
	for _, text := range texts {
		t := Target{URL: text}
		// The = of a query is behind the :// of a URL.
		if label, url, ok := strings.Cut(text, "="); ok && !strings.Contains(label, "://") {
			if !goodLabel(label) {
				return nil, fmt.Errorf("%q is not a label of 1 to 40 letters, digits and -._", label)
			}
			t = Target{label, url}
		}
		switch sameLabel := func(o Target) bool { return strings.EqualFold(o.Label, t.Label) }; {
		case t.URL == "":
			return nil, fmt.Errorf("%q names no URL", text)
		case len(texts) > 1 && t.Label == "":
			return nil, fmt.Errorf("several are told apart by labels: want label=%s", text)
		case slices.ContainsFunc(targets, sameLabel):
			return nil, fmt.Errorf("two have the label %s", t.Label)
		}
		targets = append(targets, t)
	}
	if targets == nil {
		targets = []Target{{}}
	}
	return targets, nil
}

func goodLabel(label string) bool {
	for i, r := range label {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("-._", r)) {
			return false
		}
	}
	return label != "" && len(label) <= 40
}
