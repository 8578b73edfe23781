package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"moontide/analyze/run"
	"moontide/replay/bench/search"
	"moontide/replay/runfile"
)

// LoadSearchConfig configures a search for the largest load that meets objectives.
type LoadSearchConfig struct {
	// SweepConfig configures the runs: its Axis is what is searched for, and its Levels are
	// ignored. Each Target and Shape has a search of its own, one after the other. The runs
	// of a search draw different requests: see [Leg].Draw.
	SweepConfig
	Gates []run.Gate // objectives, at least one
	// Low and High limit the levels. 0 means 0.001 and 1,000,000 requests per second, a
	// speedup of 0.001 and 1000, and a concurrency of 1 and 1,000,000.
	Low, High float64
	// MinRequests is the least number of requests of a run, unless it has all rows of a
	// trace. A run has more if requests take long, and up to three times as many close to
	// the answer, in virtual time ten times. 0 is what the percentiles of the objectives
	// need, and at least 100; in virtual time ten times as many, and at least 3000. Of n
	// requests in flight, drawn for a run over concurrencies, the first 2n and the last n
	// are not measured, unless Run has a Window: the first arrive together and wait for each
	// other, as do those that replace them, and the last see ever fewer others.
	MinRequests int
	MaxLegs     int // 0 is 12
	// EachLeg, if not nil, is called with each run that decides, INVALID ones excepted.
	EachLeg func(LoadLeg)
}

// LoadLeg is a run of a search.
type LoadLeg struct {
	LegResult
	LegJudgement
}

// FoundLoad is the answer to a search for a load.
type FoundLoad struct {
	Target Target
	Shape  Shape
	Axis   Axis
	Answer search.Answer
	Legs   []LoadLeg // in the order of the runs
	// Stopped is why the search ended early, "" if it did not.
	Stopped string
	// Invalid is the last run at a level at which all were INVALID, which ends a search
	// without deciding anything; nil if there is none.
	Invalid *LegResult
	// Failed is set if a run failed or was interrupted.
	Failed bool
}

// Runs returns the runs, including the one that is INVALID.
func (f *FoundLoad) Runs() []LoadLeg {
	if f.Invalid == nil {
		return f.Legs
	}
	return append(slices.Clip(f.Legs), LoadLeg{LegResult: *f.Invalid})
}

// Load returns the largest load that meets the objectives, 0 if none does.
func (f *FoundLoad) Load() float64 {
	switch a := f.Answer; {
	case !a.Found:
		return 0
	case !a.Limited:
		return a.Level
	default:
		return f.below(a.Estimate)
	}
}

// Interval returns the 95 % confidence interval of Load, zeros if there is none.
func (f *FoundLoad) Interval() (from, to float64) {
	return f.below(f.Answer.From), f.below(f.Answer.To)
}

// below returns the largest load that is not above a level.
func (f *FoundLoad) below(level float64) float64 {
	if f.Axis == Concurrency {
		return math.Floor(level)
	}
	return level
}

// At returns the last run at a level, nil if there is none.
func (f *FoundLoad) At(level float64) *LoadLeg {
	for i := range slices.Backward(f.Legs) {
		if f.Legs[i].Level == level {
			return &f.Legs[i]
		}
	}
	return nil
}

const (
	mostLegs     = 12
	mostInvalid  = 3 // runs at a level
	leastRun     = 100
	perLatency   = 20 // times the mean latency that a run at a rate lasts
	virtualRun   = 3000
	aimedWidth   = 0.03 // of the confidence interval, as a logarithm
	lengthenBy   = 3    // times MinRequests of a run whose errors matter
	virtualBy    = 10   // the same in virtual time
	warmupRounds = 2    // times the requests in flight: those that a run does not measure at its start
	mostLonger   = 20   // times MinRequests that a run has at most
	unloaded     = 0.5  // mean number of requests in flight without any queue
	sameExcess   = 0.01
	sameRate     = 1.02
)

// SearchLoad runs the searches, or continues them in the same folder. Like [RunSweep], it
// returns what was measured even if it fails.
func SearchLoad(ctx context.Context, cfg LoadSearchConfig) (all []*FoundLoad, err error) {
	if len(cfg.Gates) == 0 || len(cfg.Targets) == 0 {
		return nil, wrong("Gates", "are needed, and a target")
	}
	for _, shape := range cfg.shapes() {
		for _, target := range cfg.Targets {
			one := cfg
			one.Targets, one.Shapes = []Target{target}, []Shape{shape}
			found, err := one.search(ctx)
			if found != nil && (len(found.Legs) > 0 || found.Invalid != nil) {
				all = append(all, found)
			}
			if err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// search searches with one target and shape.
func (c *LoadSearchConfig) search(ctx context.Context) (*FoundLoad, error) {
	limits, err := c.limits()
	if err != nil {
		return nil, err
	}
	f := &FoundLoad{Target: c.Targets[0], Shape: c.Shapes[0], Axis: c.Axis}
	var trials []search.Trial
	for level, ok := limits.Next(trials); ok && f.Stopped == ""; level, ok = limits.Next(trials) {
		leg, err := c.attempt(ctx, c.leg(level, f.Legs, limits.Answer(trials)), f)
		if err != nil || leg == nil {
			f.Answer, f.Failed = limits.Answer(trials), err != nil
			return f, err
		}
		f.Legs, trials = append(f.Legs, *leg), append(trials, c.trial(leg))
		if c.EachLeg != nil {
			c.EachLeg(*leg)
		}
		f.Stopped = c.pointless(f.Legs)
	}
	f.Answer = limits.Answer(trials)
	return f, nil
}

// pointless returns why no other load than those of the runs would say more, "" if one
// might: no lower one meets the objectives, or no higher one misses them. An overloaded
// system misses them by the same whatever the load, and meets them at a lower one.
func (c *LoadSearchConfig) pointless(legs []LoadLeg) string {
	last := &legs[len(legs)-1]
	lowerIsMet := func(l LoadLeg) bool { return l.Level < last.Level && l.Met() }
	if last.Met() != (c.Axis == Concurrency) || !last.Met() && (last.Growth > 0 || slices.ContainsFunc(legs, lowerIsMet)) {
		return ""
	}
	if n := inFlight(last.Metrics); !last.Met() && n < unloaded {
		return fmt.Sprintf("with %.2g requests in flight on average, %v has no queue: a lower load would not help", n, last.Leg)
	}
	for i := range legs[:len(legs)-1] {
		before := &legs[i]
		same := math.Abs(before.Excess-last.Excess) < sameExcess && before.Met() == last.Met()
		switch {
		case same && !last.Met() && before.Level >= 2*last.Level:
			return fmt.Sprintf("%v misses %v by as much as %v: a lower load would not help", last.Leg, last.Tightest.Gate.Condition, before.Leg)
		case same && last.Met() && before.Level <= last.Level/2 && last.Metrics.RequestRate.Value < sameRate*before.Metrics.RequestRate.Value:
			return fmt.Sprintf("%v has the throughput and the %s of %v: more requests would only wait", last.Leg, last.Tightest.Gate.Metric.Label, before.Leg)
		}
	}
	return ""
}

// attempt runs a leg up to three times until it is not INVALID, and judges it. It returns
// nil if all runs are INVALID, and says so in f.
func (c *LoadSearchConfig) attempt(ctx context.Context, l Leg, f *FoundLoad) (*LoadLeg, error) {
	measured, err := c.measure(ctx, l)
	if err != nil {
		return nil, err
	}
	if v := measured.Metrics.Verdict; v.Level == run.Invalid {
		f.Invalid, f.Stopped = measured, fmt.Sprintf("%d runs at %v were INVALID: %s", mostInvalid, measured.Leg, v.Reasons()[0])
		return nil, nil
	}
	judged, err := c.Judge(measured.Result)
	if err != nil {
		return nil, err
	}
	for _, j := range judged.Judgements {
		if reason := j.Gate.TooFewRequests(measured.Metrics.Completed); reason != "" && measured.Metrics.Failed == 0 {
			return nil, &ConfigError{"", fmt.Errorf("%v cannot be judged at %v: %s; use more requests, or a lower percentile", j.Gate.Condition, measured.Leg, reason)}
		}
	}
	return &LoadLeg{LegResult: *measured, LegJudgement: judged}, nil
}

func (c *LoadSearchConfig) exact() bool { return c.Run.Virtual && c.Recorded && c.Axis == Speedup }

// limits returns the search.
func (c *LoadSearchConfig) limits() (search.Config, error) {
	low, high, start := levelRange(c.Axis, mostConcurrency)
	s := search.Config{
		Goal: search.Largest, Low: cmp.Or(c.Low, low), High: cmp.Or(c.High, high), Whole: c.Axis == Concurrency,
		MaxTrials: cmp.Or(c.MaxLegs, mostLegs),
	}
	if s.Start = start; c.Low != 0 && (c.High != 0 || start < c.Low) {
		s.Start = s.Low
	}
	s.Start = min(max(s.Start, s.Low), s.High)
	if err := s.Check(); err != nil {
		return s, &ConfigError{"", err}
	}
	return s, nil
}

// levelRange returns the levels to search by default, and where to start.
func levelRange(a Axis, concurrency float64) (low, high, start float64) {
	switch a {
	case Rate:
		return 0.001, mostRate, 1
	case Speedup:
		return 0.001, 1000, 1
	}
	return 1, concurrency, 1
}

// leg returns the next run.
func (c *LoadSearchConfig) leg(level float64, before []LoadLeg, so search.Answer) Leg {
	l := c.Sweep.leg(c.Targets[0], c.Shapes[0], level)
	l.Draw = len(before)
	repeats := 1
	for i := range before {
		if before[i].Level == level {
			repeats++
		}
	}
	if l.Repeat = repeats; repeats > 1 {
		l.Name = fmt.Sprintf("%s-repeat-%d", l.Name, repeats)
	}
	if !c.Recorded && c.Prompts == 0 {
		l.Prompts = c.requests(level, before, so)
	}
	return l
}

// requests returns how many requests a run at a level needs: what its percentiles need, and
// more once levels on both sides of the answer are known, as far as the errors of the runs
// make it uncertain.
func (c *LoadSearchConfig) requests(level float64, before []LoadLeg, so search.Answer) int {
	least := c.least()
	if so.Found && so.Limited {
		wider, most := math.Log(so.To/so.From)/aimedWidth, float64(lengthenBy)
		if c.Run.Virtual {
			most = virtualBy
		}
		least = int(float64(least) * min(max(wider*wider, 1), most)) // errors fall with the square root
	}
	if c.Axis == Concurrency {
		return max(least, promptsPerSlot*int(level)) + (warmupRounds+1)*c.unmeasured(int(level))
	}
	near := (*LoadLeg)(nil)
	for i := range before {
		if near == nil || math.Abs(math.Log(before[i].Level/level)) < math.Abs(math.Log(near.Level/level)) {
			near = &before[i]
		}
	}
	n := level * rateSeconds
	if c.Run.Virtual {
		n = 0
	}
	if near != nil {
		n = max(n, level*perLatency*near.Metrics.E2EL.Mean/1000)
	}
	return max(least, int(math.Ceil(min(n, mostLonger*float64(c.least())))))
}

// least returns the least number of requests of a run.
func (c *LoadSearchConfig) least() int {
	if c.MinRequests > 0 {
		return c.MinRequests
	}
	least := leastRun
	for _, g := range c.Gates {
		least = max(least, g.RequestsNeeded())
	}
	if c.Run.Virtual {
		return max(virtualRun, 10*least)
	}
	return least
}

// unmeasured returns how many requests at the end of a run are not measured, and
// warmupRounds times as many at its start.
func (c *LoadSearchConfig) unmeasured(concurrency int) int {
	if c.Axis != Concurrency || c.Recorded || c.Run.Window != (runfile.Window{}) || c.Run.NoChunkTimes {
		return 0
	}
	return concurrency
}

// measure runs a leg, again if it is INVALID.
func (c *LoadSearchConfig) measure(ctx context.Context, l Leg) (*LegResult, error) {
	cfg := c.SweepConfig
	if n := c.unmeasured(l.MaxConcurrency); n > 0 {
		cfg.Run.Window = runfile.Window{WarmupRequests: warmupRounds * n, CooldownRequests: n}
	}
	for n := 1; ; n++ {
		results, err := RunLegs(ctx, cfg, []Leg{l})
		switch {
		case err != nil:
			return nil, err
		case len(results) == 0:
			return nil, errors.New("the run was not measured")
		case results[0].Metrics.Verdict.Level != run.Invalid || n == mostInvalid:
			return &results[0], nil
		}
	}
}

// trial returns what a run tells the search.
func (c *LoadSearchConfig) trial(l *LoadLeg) search.Trial {
	t := search.Trial{Level: l.Level, Met: l.Met(), Known: true, Excess: l.Excess, Error: l.Error}
	if l.Growth > 0 && l.Served > 0 {
		t.Ceiling, t.CeilingError = l.Level*l.Served, l.ServedError
	}
	if sent := l.Metrics.OfferedRate; c.Axis == Rate && sent.Set {
		t.Load = sent.Value
		t.Ceiling *= t.Load / t.Level
	}
	return t
}

// inFlight returns the mean number of requests in flight, by Little's law.
func inFlight(r *run.Result) float64 { return r.RequestRate.Value * r.E2EL.Mean / 1000 }
