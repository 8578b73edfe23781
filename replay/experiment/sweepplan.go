package experiment

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"moontide/replay/runfile"
	"moontide/replay/secret"
	"moontide/replay/sim/engine"
	"moontide/trace/stats"
)

// Sweep plans runs at several levels of load against each target, with requests of one or
// more shapes or of a trace.
type Sweep struct {
	Axis   Axis      // Concurrency, Rate or Speedup
	Levels []float64 // distinct, in run order
	// Shapes are the lengths of requests; nil leaves them to the trace.
	Shapes []Shape
	// Recorded means that the requests are those of a trace, as Speedup requires.
	Recorded bool
	// Prompts is the number of requests per run; 0 derives it from the level,
	// see [Sweep.Legs]. An infinite rate requires it, unless the requests are Recorded.
	Prompts int
	// Ceiling limits the requests in flight unless the axis is Concurrency; 0 is no
	// limit.
	Ceiling int
	Targets []Target // at least one
}

// Axis is the quantity that varies between the levels of a sweep.
type Axis string

const (
	// Concurrency is the number of requests in flight, in a closed loop.
	Concurrency Axis = "concurrency"
	// Rate is the number of arrivals per second; at +Inf all arrive at once.
	Rate Axis = "rate"
	// Speedup divides the times of a trace, so that requests arrive faster.
	Speedup Axis = "speedup"
)

// Target is one of the deployments that a sweep compares.
type Target struct {
	Label string // may be "" if there is only one target
	URL   string // "" for simulated engines
	// Engines are the simulated engines; nil means those of the runs.
	Engines *engine.Deployment
}

// Shape is the prompt length (ISL) and the answer length (OSL) of requests in tokens.
// The zero value leaves them to the trace.
type Shape struct{ ISL, OSL int }

// String returns ISL:OSL, or "" for the zero value.
func (s Shape) String() string {
	if s == (Shape{}) {
		return ""
	}
	return fmt.Sprintf("%d:%d", s.ISL, s.OSL)
}

// ParseShapes parses comma-separated shapes such as 3000:150,1000:1000.
func ParseShapes(text string) ([]Shape, error) {
	return parseList(text, "shapes", func(part string) ([]Shape, error) {
		first, second, _ := strings.Cut(part, ":")
		isl, errISL := strconv.Atoi(first)
		osl, errOSL := strconv.Atoi(second)
		if errISL != nil || errOSL != nil || isl < 1 || osl < 1 || max(isl, osl) > mostTokens {
			return nil, fmt.Errorf("%q is not ISL:OSL, two whole numbers from 1 to %d, such as 3000:150", part, mostTokens)
		}
		return []Shape{{isl, osl}}, nil
	})
}

// parseList parses distinct comma-separated values.
func parseList[T comparable](text, what string, parse func(part string) ([]T, error)) (all []T, err error) {
	for part := range strings.SplitSeq(text, ",") {
		values, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			switch {
			case slices.Contains(all, v):
				return nil, fmt.Errorf("%v is repeated", v)
			case len(all) == mostLevels:
				return nil, fmt.Errorf("more than %d %s", mostLevels, what)
			}
			all = append(all, v)
		}
	}
	return all, nil
}

// Leg is one run of a sweep.
type Leg struct {
	// Name is unique in the sweep and a valid file name: concurrency-8, or
	// baseline-3000-150-rate-2.5 if targets have labels and requests several shapes.
	Name   string
	Target Target
	Shape  Shape
	Axis   Axis
	Level  float64
	// Prompts is the number of requests; 0 is all of a trace.
	Prompts        int
	MaxConcurrency int // 0 is no limit
	// Of a search for a load, Draw changes the seed of the requests' arrivals and texts,
	// and Repeat counts the runs at a level from 1.
	Draw, Repeat int

	Unmeasured int // requests at the end, and warmupRounds times as many at the start
}

const (
	// promptsPerSlot is the number of requests per request in flight. The server is not
	// fully loaded during the first and the last of them.
	promptsPerSlot = 10
	// rateSeconds is how long requests arrive at a rate.
	rateSeconds = 60
	// minPrompts is enough for a median.
	minPrompts = 10
)

// Legs returns the runs in order: all targets at the first level, then all at the next, so
// that targets are measured soon after each other. Unless Prompts is set, a run has all
// requests of a trace, ten requests per request in flight, or those of one minute at its
// rate, and at least ten.
func (s Sweep) Legs() []Leg {
	var legs []Leg
	for _, shape := range s.shapes() {
		for _, level := range s.Levels {
			for _, target := range s.Targets {
				legs = append(legs, s.leg(target, shape, level))
			}
		}
	}
	return legs
}

// shapes returns the shapes, the zero one if there are none.
func (s *Sweep) shapes() []Shape {
	if s.Shapes == nil {
		return []Shape{{}}
	}
	return s.Shapes
}

func (s *Sweep) leg(target Target, shape Shape, level float64) Leg {
	leg := Leg{Target: target, Shape: shape, Axis: s.Axis, Level: level, Prompts: s.Prompts}
	leg.Name = fmt.Sprintf("%s-%s", s.Axis, FormatLevel(level))
	if shape != (Shape{}) {
		leg.Name = fmt.Sprintf("%d-%d-%s", shape.ISL, shape.OSL, leg.Name)
	}
	if target.Label != "" {
		leg.Name = target.Label + "-" + leg.Name
	}
	each := rateSeconds
	if leg.MaxConcurrency = s.Ceiling; s.Axis == Concurrency {
		leg.MaxConcurrency, each = int(level), promptsPerSlot
	}
	if leg.Prompts == 0 && !s.Recorded {
		leg.Prompts = max(minPrompts, int(math.Ceil(level*float64(each))))
	}
	return leg
}

// String names the leg: "baseline, 3000:150, concurrency 8".
func (l Leg) String() string {
	what := fmt.Sprintf("%s %s", l.Axis, FormatLevel(l.Level))
	for _, of := range []string{l.Shape.String(), l.Target.Label} {
		if of != "" {
			what = of + ", " + what
		}
	}
	return what
}

// recorded returns the leg as it is in run.json.
func (l Leg) recorded() runfile.Leg {
	return runfile.Leg{Deployment: l.Target.Label, Shape: l.Shape.String(), Axis: string(l.Axis), Level: FormatLevel(l.Level), Repeat: l.Repeat}
}

// FormatLevel formats a level without an exponent, and infinity as inf.
func FormatLevel(level float64) string {
	return strings.ToLower(strings.TrimPrefix(stats.Plain(level), "+"))
}

const (
	mostLevels      = 1000
	mostConcurrency = 1_000_000
	mostRate        = 1_000_000
	mostTokens      = 100_000_000
)

// ParseLevels parses comma-separated levels such as 1,2,4,8. Concurrencies must
// be whole numbers, and may be ranges: see [ParseCounts]. A rate may be inf.
func ParseLevels(axis Axis, text string) ([]float64, error) {
	var levels []float64
	if axis == Concurrency {
		counts, err := ParseCounts(text, mostConcurrency)
		for _, n := range counts {
			levels = append(levels, float64(n))
		}
		return levels, err
	}
	return parseList(text, "levels", func(part string) ([]float64, error) {
		level, err := strconv.ParseFloat(part, 64)
		endless, or := axis == Rate && math.IsInf(level, 1), ""
		if axis == Rate {
			or = ", or inf"
		}
		if !(err == nil && level > 0 && (level <= mostRate || endless)) {
			return nil, fmt.Errorf("%q must be a number above 0 and at most %d%s", part, mostRate, or)
		}
		return []float64{level}, nil
	})
}

// ParseCounts parses comma-separated whole numbers from 1 to most, and ranges of them:
// 1,2,4, or 1..16, or 4..16..4 with a step.
func ParseCounts(text string, most int) ([]int, error) {
	return parseList(text, "levels", func(part string) (counts []int, err error) {
		words := strings.SplitN(part, "..", 3)
		numbers := []int{0, 0, 1} // from, to, step
		for i, word := range words {
			n, err := strconv.ParseFloat(strings.TrimSpace(word), 64) // 1e3 is a whole number
			if !(err == nil && n >= 1 && n <= float64(most) && n == math.Trunc(n)) {
				return nil, fmt.Errorf("%q is not a whole number from 1 to %d", word, most)
			}
			numbers[i] = int(n)
		}
		if len(words) == 1 {
			numbers[1] = numbers[0]
		}
		if numbers[0] > numbers[1] {
			return nil, fmt.Errorf("the range %s is empty", part)
		}
		for n := numbers[0]; n <= numbers[1] && len(counts) <= mostLevels; n += numbers[2] {
			counts = append(counts, n)
		}
		return counts, nil
	})
}

// ParseTargets parses targets, each a URL or label=URL. Several need labels, which become
// part of file names: up to 40 letters, digits and -._, starting with a letter or digit.
// Without texts, the target is the embedded endpoint.
func ParseTargets(texts []string) ([]Target, error) {
	var targets []Target
	for _, text := range texts {
		t := Target{URL: text}
		// An = in a query follows the :// of the URL.
		if label, url, ok := strings.Cut(text, "="); ok && !strings.Contains(label, "://") {
			if !goodLabel.MatchString(label) {
				return nil, fmt.Errorf("%q is not a label of 1 to 40 letters, digits and -._", label)
			}
			t = Target{Label: label, URL: url}
		}
		switch sameLabel := func(o Target) bool { return strings.EqualFold(o.Label, t.Label) }; {
		case t.URL == "":
			return nil, fmt.Errorf("%q has no URL", text)
		case len(texts) > 1 && t.Label == "":
			return nil, fmt.Errorf("several URLs need labels: label=%s", secret.URL(text))
		case slices.ContainsFunc(targets, sameLabel):
			return nil, fmt.Errorf("two URLs have the label %s", t.Label)
		}
		targets = append(targets, t)
	}
	if targets == nil {
		targets = []Target{{}}
	}
	return targets, nil
}

var goodLabel = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)
