package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"moontide/analyze/measure"
	"moontide/replay/experiment/search"
	"moontide/replay/runfile"
)

// LoadSearchConfig configures a search for the largest load that meets objectives.
type LoadSearchConfig struct {
	// SweepConfig configures the runs. The search is over its Axis; its Levels are
	// ignored. Each Target and Shape has its own search, one after the other. The runs of
	// a search draw different requests: see [Leg].Draw.
	SweepConfig
	Gates []measure.Gate // objectives, at least one
	// Low and High limit the levels. 0 means 0.001 and 1,000,000 requests per second, a
	// speedup of 0.001 and 1000, and a concurrency of 1 and 1,000,000.
	Low, High float64
	// MinRequests is the minimum number of requests of a run that does not have all rows
	// of a trace. A run has more if requests take long, and three times as many close to
	// the answer. 0 is as many as the percentiles of the objectives need and at least 100,
	// in virtual time ten times as many.
	//
	// A run with n drawn requests in flight does not measure the first 2n requests, which
	// arrive together, and the last n, when concurrency falls, unless Run has a Window.
	MinRequests int
	MaxLegs     int // 0 is 20
}

// LoadLeg is a run of a search.
type LoadLeg struct {
	LegResult
	Judgements []measure.Judgement // of the objectives
	// Growth is the growth of the queue in requests per second. With a growing queue,
	// every objective of latency fails in the end.
	Growth float64
}

// Met reports whether the run met the objectives, its queue did not grow, and it is not
// INVALID.
func (l *LoadLeg) Met() bool {
	return !l.invalid() && l.Growth == 0 && len(measure.Failed(l.Judgements)) == 0
}

func (l *LoadLeg) invalid() bool { return l.Metrics.Verdict.Level == measure.Invalid }

// FoundLoad is the answer to a search for a load.
type FoundLoad struct {
	Target Target
	Shape  Shape
	Axis   Axis
	Answer search.Answer
	Legs   []LoadLeg // in the order of the runs
	// Stopped is why the search ended early, "" if it did not.
	Stopped string
	// Invalid is a run at the lowest load that fails if all runs there are INVALID: the
	// server may meet the objectives at that load. It is nil if there is none.
	Invalid *LoadLeg
	// Failed is set if a run failed or was interrupted.
	Failed bool
}

// Load returns the load at a level: the level itself, or the rate that its runs sent if it
// is clearly lower, because the turns of sessions wait for each other.
func (f *FoundLoad) Load(level float64) float64 {
	if f.Axis != Rate {
		return level
	}
	sum, runs := 0.0, 0.0
	for i := range f.Legs {
		if sent := f.Legs[i].Metrics.AchievedRate; f.Legs[i].Level == level && sent.Set {
			sum, runs = sum+sent.Value, runs+1
		}
	}
	if mean := sum / runs; runs > 0 && mean < clearlyLess*level {
		return mean
	}
	return level
}

// At returns the run at a level that misses the most objectives, the last of several, nil
// if there is none. It returns an INVALID run only if all are.
func (f *FoundLoad) At(level float64) (worst *LoadLeg) {
	for i := range f.Legs {
		l := &f.Legs[i]
		switch {
		case l.Level != level:
		case worst == nil, worst.invalid() && !l.invalid(),
			worst.invalid() == l.invalid() && len(measure.Failed(l.Judgements)) >= len(measure.Failed(worst.Judgements)):
			worst = l
		}
	}
	return worst
}

const (
	mostLegs     = 20
	repeats      = 3 // runs at the levels of the answer
	mostInvalid  = 3 // runs, if none meets the objectives
	leastRun     = 100
	perLatency   = 20   // times the mean latency that a run at a rate lasts
	virtualBy    = 10   // times the requests of a run in virtual time
	longer       = 3    // times the requests of a run once the answer is bracketed
	mostLonger   = 20   // maximum requests of a run, in times of the minimum
	warmupRounds = 2    // unmeasured requests at the start, in times of those in flight
	unloaded     = 0.5  // mean number of requests in flight without any queue
	sameValue    = 1.01 // ratio of values that are the same
	sameRate     = 1.05
	clearlyLess  = 0.9
)

// SearchLoad runs the searches, or continues them in the same folder. Like [RunSweep], it
// returns the measured runs even if it fails.
func SearchLoad(ctx context.Context, cfg LoadSearchConfig) (all []*FoundLoad, err error) {
	if len(cfg.Gates) == 0 || len(cfg.Targets) == 0 {
		return nil, wrong("Gates", "are needed, and a target")
	}
	for _, shape := range cfg.shapes() {
		for _, target := range cfg.Targets {
			one := cfg
			one.Targets, one.Shapes = []Target{target}, []Shape{shape}
			found, err := one.search(ctx)
			if found != nil && len(found.Legs) > 0 {
				all = append(all, found)
			}
			if err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// search searches with one target and shape. An INVALID run fails at its load: a lower one
// may be within the limits of the client.
func (c *LoadSearchConfig) search(ctx context.Context) (*FoundLoad, error) {
	limits, err := c.limits()
	if err != nil {
		return nil, err
	}
	f := &FoundLoad{Target: c.Targets[0], Shape: c.Shapes[0], Axis: c.Axis}
	var trials []search.Trial
	sweep := c.SweepConfig
	sweep.keepInvalid = true
	_, err = sweep.runEach(ctx, nil, func(done []LegResult) (leg Leg, more bool, err error) {
		if len(done) > len(f.Legs) {
			judged, err := c.judge(done[len(done)-1])
			if err != nil {
				return leg, false, err
			}
			f.Legs, trials = append(f.Legs, judged), append(trials, search.Trial{Level: judged.Level, Met: judged.Met()})
			f.Stopped = c.pointless(f.Legs)
		}
		level, more := limits.Next(trials)
		if !more || f.Stopped != "" {
			return leg, false, nil
		}
		leg = c.leg(level, f.Legs, limits.Answer(trials))
		return leg, true, sweep.check(leg)
	})
	f.Answer, f.Failed = limits.Answer(trials), err != nil
	if at := f.At(f.Answer.Missed); f.Answer.Limited && at.invalid() {
		f.Invalid = at
	}
	return f, err
}

// pointless returns why more runs would not help, "" if they might: no lower load meets
// the objectives, or no higher one misses them.
func (c *LoadSearchConfig) pointless(legs []LoadLeg) string {
	last := &legs[len(legs)-1]
	met, invalid := 0, 0
	var before *LoadLeg // at the highest load of at most half of it that meets the objectives
	for i := range legs {
		l := &legs[i]
		switch {
		case l.invalid():
			invalid++
		case l.Met():
			met++
		}
		if l.Met() && l.Level <= last.Level/2 && (before == nil || l.Level > before.Level) {
			before = l
		}
	}
	switch {
	case last.invalid():
		if met == 0 && invalid >= mostInvalid {
			return fmt.Sprintf("%d runs were INVALID, the last with %v: %s", invalid, last.Leg, last.Metrics.Verdict.Reasons()[0])
		}
	case !last.Met():
		if n := inFlight(last.Metrics); c.Axis != Concurrency && last.Growth == 0 && before == nil && n < unloaded {
			return fmt.Sprintf("with %.2g requests in flight on average, %v has no queue: a lower load would not help", n, last.Leg)
		}
	case before == nil:
	case c.Axis == Concurrency:
		if last.Metrics.RequestRate.Value < sameRate*before.Metrics.RequestRate.Value && sameValues(before.Judgements, last.Judgements) {
			return fmt.Sprintf("%v has the throughput of %v, and meets the objectives as well: more requests would only wait", last.Leg, before.Leg)
		}
	default:
		if sent := last.Metrics.AchievedRate; sent.Set && sent.Value < sameRate*before.Metrics.AchievedRate.Value {
			return fmt.Sprintf("the sessions offer at most %.3g req/s, because each turn waits for the one before", sent.Value)
		}
	}
	return ""
}

// sameValues reports whether two runs have about the same values of the objectives.
func sameValues(a, b []measure.Judgement) bool {
	for i := range a {
		low, high := min(a[i].Value.Value, b[i].Value.Value), max(a[i].Value.Value, b[i].Value.Value)
		if high > sameValue*low {
			return false
		}
	}
	return true
}

func (c *LoadSearchConfig) judge(measured LegResult) (LoadLeg, error) {
	judged := LoadLeg{LegResult: measured}
	for _, g := range c.Gates {
		if reason := g.TooFewRequests(measured.Metrics.Completed); reason != "" && measured.Metrics.Failed == 0 && !judged.invalid() {
			return judged, &ConfigError{"", fmt.Errorf("%v cannot be judged at %v: %s; use more requests, or a lower percentile", g.Condition, measured.Leg, reason)}
		}
		judged.Judgements = append(judged.Judgements, g.Judge(measured.Metrics))
	}
	if c.Axis != Rate || judged.invalid() { // the rate of a trace varies, and its arrivals end
		return judged, nil
	}
	var err error
	judged.Growth, err = growthOf(measured.Result)
	return judged, err
}

// limits returns the configuration of the search.
func (c *LoadSearchConfig) limits() (search.Config, error) {
	low, high := 0.001, map[Axis]float64{Rate: mostRate, Speedup: 1000, Concurrency: mostConcurrency}[c.Axis]
	if c.Axis == Concurrency {
		low = 1
	}
	s := search.Config{
		Low: cmp.Or(c.Low, low), High: cmp.Or(c.High, high), Whole: c.Axis == Concurrency,
		MaxTrials: cmp.Or(c.MaxLegs, mostLegs), Repeats: repeats,
	}
	if c.Run.Virtual && c.Recorded && c.Axis == Speedup { // a run would give the same result again
		s.Repeats = 1
	}
	if s.Start = min(max(1, s.Low), s.High); c.Low != 0 && c.High != 0 {
		s.Start = s.Low
	}
	if err := s.Check(); err != nil {
		return s, &ConfigError{"", err}
	}
	return s, nil
}

// leg returns the next run.
func (c *LoadSearchConfig) leg(level float64, before []LoadLeg, so search.Answer) Leg {
	l := c.Sweep.leg(c.Targets[0], c.Shapes[0], level)
	l.Draw = len(before)
	l.Repeat = 1
	for i := range before {
		if before[i].Level == level {
			l.Repeat++
		}
	}
	if l.Repeat > 1 {
		l.Name = fmt.Sprintf("%s-repeat-%d", l.Name, l.Repeat)
	}
	if !c.Recorded && c.Prompts == 0 {
		l.Prompts = c.requests(level, before, so)
	}
	l.Unmeasured = c.unmeasured(l.MaxConcurrency)
	return l
}

// requests returns the number of requests of a run at a level: as many as its percentiles
// need, more once the answer is bracketed or if requests take long.
func (c *LoadSearchConfig) requests(level float64, before []LoadLeg, so search.Answer) int {
	least := c.least()
	most := mostLonger * float64(least)
	if so.Found && so.Limited {
		least *= longer
	}
	if c.Axis == Concurrency {
		return max(least, promptsPerSlot*int(level)) + (warmupRounds+1)*c.unmeasured(int(level))
	}
	n := level * rateSeconds
	if c.Run.Virtual {
		n = 0
	}
	if len(before) > 0 {
		n = max(n, level*perLatency*before[len(before)-1].Metrics.E2EL.Mean/1000)
	}
	return max(least, int(math.Ceil(min(n, most))))
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
		least *= virtualBy
	}
	return least
}

// unmeasured returns the number of unmeasured requests at the end of a run; those at its
// start are warmupRounds times as many.
func (c *LoadSearchConfig) unmeasured(concurrency int) int {
	if c.Axis != Concurrency || c.Recorded || c.Run.Window != (runfile.Window{}) || c.Run.NoChunkTimes {
		return 0
	}
	return concurrency
}

// inFlight returns the mean number of requests in flight, by Little's law.
func inFlight(r *measure.Result) float64 { return r.RequestRate.Value * r.E2EL.Mean / 1000 }

// leastGrowth is the smallest growth of a queue, as a share of the arriving requests.
const leastGrowth = 0.04

// growthOf returns the growth of the queue in a recorded run.
func growthOf(r *Result) (perSecond float64, err error) {
	records, err := OpenRecording(r.Dir)
	if err != nil {
		return 0, err
	}
	defer records.Close()
	var due, done []time.Duration
	for rec, err := range records.Records {
		if err != nil {
			return 0, err
		}
		if r.Metrics.Window.Holds(&rec) {
			due, done = append(due, rec.Due), append(done, rec.Done)
		}
	}
	return growth(due, done), nil
}

// growth returns the growth, in requests per second, of the requests that are due and not
// done while requests arrive, 0 unless it is a clear share of the arrivals. It compares the
// last fifth of the arrivals with the second, because the first fills the system.
func growth(due, done []time.Duration) (perSecond float64) {
	if len(due) < leastRun {
		return 0
	}
	slices.Sort(due)
	slices.Sort(done)
	waiting := func(from int) (mean float64) { // while a fifth of the requests arrive
		n := len(due) / 5
		for i := range n {
			ended, _ := slices.BinarySearch(done, due[from+i])
			mean += float64(from+i+1-ended) / float64(n)
		}
		return mean
	}
	first, last := len(due)/5, len(due)-len(due)/5
	before, after := waiting(first), waiting(last)
	seconds := (due[last] - due[first]).Seconds()
	more := after - before
	if seconds <= 0 || more < leastGrowth*float64(last-first) || more < 3*math.Sqrt(before+after) || after < 1.3*before {
		return 0
	}
	return more / seconds
}
