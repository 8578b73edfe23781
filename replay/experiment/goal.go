package experiment

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/replay/experiment/search"
	"moontide/replay/runfile"
	"moontide/replay/settings"
)

// Goal searches for the largest load that meets objectives.
type Goal struct {
	Setting string     // of the load
	Gates   []slo.Gate // objectives, at least one
	// Low and High limit the levels. 0 means 0.001 and 1,000,000 requests per second, a
	// speedup of 0.001 and 1000, and a concurrency of 1 and 1,000,000.
	Low, High float64
	// MinRequests is the minimum number of requests of a run that does not have all rows
	// of a trace. A run has more if requests take long, and three times as many close to
	// the answer. 0 is as many as the percentiles of the objectives need and at least 100,
	// in virtual time ten times as many.
	//
	// A run with n drawn requests in flight does not measure the first 2n requests, which
	// arrive together, and the last n, when concurrency falls, unless it has a window.
	MinRequests int
	MaxRuns     int // 0 is 20
}

// GoalRecord is a goal in [SetFile]. Its objectives are among the settings of the set.
type GoalRecord struct {
	Setting string  `json:"setting"`
	Low     float64 `json:"low,omitempty"`
	High    float64 `json:"high,omitempty"`
	MaxRuns int     `json:"max_runs,omitempty"`
}

func (g *Goal) record() *GoalRecord {
	if g == nil {
		return nil
	}
	return &GoalRecord{g.Setting, g.Low, g.High, g.MaxRuns}
}

// Answer is the result of a search at one point of the other axes.
type Answer struct {
	Point   Point // of the other axes
	Setting string
	search.Answer
	Trials []Trial // in the order of the runs
	// Stopped is why the search ended early, "" if it did not.
	Stopped string
	// Invalid is a run at the lowest load that fails if all runs there are INVALID: the
	// server may meet the objectives at that load. It is nil if there is none.
	Invalid *Trial
	// Failed is set if a run failed or was interrupted.
	Failed bool
}

// Load returns the load at a level: the level itself, or the rate that its runs sent if it
// is clearly lower, because the turns of sessions wait for each other.
func (a *Answer) Load(level float64) float64 {
	if a.Setting != "rate" {
		return level
	}
	sum, runs := 0.0, 0.0
	for i := range a.Trials {
		if sent := a.Trials[i].Metrics.AchievedRate; a.Trials[i].Level() == level && sent.Set {
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
func (a *Answer) At(level float64) (worst *Trial) {
	for i := range a.Trials {
		t := &a.Trials[i]
		switch {
		case t.Level() != level:
		case worst == nil, worst.Invalid() && !t.Invalid(),
			worst.Invalid() == t.Invalid() && len(slo.Failed(t.Judgements)) >= len(slo.Failed(worst.Judgements)):
			worst = t
		}
	}
	return worst
}

const (
	mostRuns     = 20
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

// Search runs the searches of a set with a goal, or continues them in the same folder: one
// at each point, one after the other. Like [Set.Run], it returns the measured runs even if
// it fails.
func (s *Set) Search(ctx context.Context) (answers []*Answer, err error) {
	if s.Goal == nil || len(s.Goal.Gates) == 0 {
		return nil, wrong("a search needs objectives")
	}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	points := s.Points
	if len(points) == 0 {
		points = []Point{{}}
	}
	for _, p := range points {
		if load, _ := p.With(runfile.Value{Setting: s.Goal.Setting, Text: "1"}).Load(); load != s.Goal.Setting {
			return answers, wrong("a search for {%s} cannot be at several values of {%s}", s.Goal.Setting, load)
		}
		a, err := s.searchAt(ctx, p)
		if a != nil && len(a.Trials) > 0 {
			answers = append(answers, a)
		}
		if err != nil {
			return answers, err
		}
	}
	return answers, nil
}

// search is [Set.Search] with the trials of all answers.
func (s *Set) search(ctx context.Context) (trials []Trial, err error) {
	answers, err := s.Search(ctx)
	for _, a := range answers {
		trials = append(trials, a.Trials...)
	}
	return trials, err
}

// searchAt searches at one point. An INVALID run fails at its load: a lower one may be
// within the limits of the client.
func (s *Set) searchAt(ctx context.Context, p Point) (*Answer, error) {
	limits, err := s.limits()
	if err != nil {
		return nil, err
	}
	a := &Answer{Point: p, Setting: s.Goal.Setting}
	_, err = s.each(ctx, nil, func(done []Trial) (t Trial, more bool, err error) {
		if len(done) > len(a.Trials) {
			if err := s.add(a, done[len(done)-1], limits); err != nil {
				return t, false, err
			}
		}
		level, more := limits.Next(a.outcomes())
		if !more || a.Stopped != "" {
			return t, false, nil
		}
		t = s.next(p, level, a.Trials, a.Answer)
		return t, true, s.check(t)
	})
	a.Failed = err != nil
	return a, err
}

// add judges a trial and updates the answer.
func (s *Set) add(a *Answer, t Trial, limits search.Config) error {
	judged, err := s.judge(t)
	if err != nil {
		return err
	}
	a.Trials = append(a.Trials, judged)
	a.Stopped, a.Answer, a.Invalid = s.pointless(a.Trials), limits.Answer(a.outcomes()), nil
	if at := a.At(a.Missed); a.Limited && at.Invalid() {
		a.Invalid = at
	}
	return nil
}

func (a *Answer) outcomes() (all []search.Trial) {
	for i := range a.Trials {
		all = append(all, search.Trial{Level: a.Trials[i].Level(), Met: a.Trials[i].Met()})
	}
	return all
}

// Answers returns the answers of a set with a goal from trials in the order of their runs,
// as [Set.Search] gave them.
func (s *Set) Answers(trials []Trial) (answers []*Answer, err error) {
	limits, err := s.limits()
	if err != nil {
		return nil, err
	}
	for _, t := range trials {
		at := Point{Values: slices.DeleteFunc(slices.Clone(t.Values), func(v runfile.Value) bool { return v.Setting == s.Goal.Setting })}
		i := slices.IndexFunc(answers, func(a *Answer) bool { return a.Point.Same(at) })
		if i < 0 {
			i = len(answers)
			answers = append(answers, &Answer{Point: at, Setting: s.Goal.Setting})
		}
		if err := s.add(answers[i], t, limits); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// pointless returns why more runs would not help, "" if they might: no lower load meets
// the objectives, or no higher one misses them.
func (s *Set) pointless(trials []Trial) string {
	last := &trials[len(trials)-1]
	met, invalid := 0, 0
	var before *Trial // at the highest load of at most half of it that meets the objectives
	for i := range trials {
		t := &trials[i]
		switch {
		case t.Invalid():
			invalid++
		case t.Met():
			met++
		}
		if t.Met() && t.Level() <= last.Level()/2 && (before == nil || t.Level() > before.Level()) {
			before = t
		}
	}
	closed := closes(s.Goal.Setting)
	switch {
	case last.Invalid():
		if met == 0 && invalid >= mostInvalid {
			return fmt.Sprintf("%d runs were INVALID, the last with %v: %s", invalid, last.Point, last.Metrics.Verdict.Reasons()[0])
		}
	case !last.Met():
		if n := inFlight(last.Metrics); !closed && last.Growth == 0 && before == nil && n < unloaded {
			return fmt.Sprintf("with %.2g requests in flight on average, %v has no queue: a lower load would not help", n, last.Point)
		}
	case before == nil:
	case closed:
		if last.Metrics.RequestRate.Value < sameRate*before.Metrics.RequestRate.Value && sameValues(before.Judgements, last.Judgements) {
			return fmt.Sprintf("%v has the throughput of %v, and meets the objectives as well: more requests would only wait", last.Point, before.Point)
		}
	default:
		if sent := last.Metrics.AchievedRate; sent.Set && sent.Value < sameRate*before.Metrics.AchievedRate.Value {
			return fmt.Sprintf("the sessions offer at most %.3g req/s, because each turn waits for the one before", sent.Value)
		}
	}
	return ""
}

// sameValues reports whether two runs have about the same values of the objectives.
func sameValues(a, b []slo.Judgement) bool {
	for i := range a {
		low, high := min(a[i].Value.Value, b[i].Value.Value), max(a[i].Value.Value, b[i].Value.Value)
		if high > sameValue*low {
			return false
		}
	}
	return true
}

func (s *Set) judge(t Trial) (Trial, error) {
	for _, g := range s.Goal.Gates {
		if reason := g.TooFewRequests(t.Metrics.Completed); reason != "" && t.Metrics.Failed == 0 && !t.Invalid() {
			return t, wrong("%v cannot be judged at %v: %s; use more requests, or a lower percentile", g.Condition, t.Point, reason)
		}
		t.Judgements = append(t.Judgements, g.Judge(t.Metrics))
	}
	if s.Goal.Setting != "rate" || t.Invalid() { // the rate of a trace varies, and its arrivals end
		return t, nil
	}
	var err error
	t.Growth, err = growthOf(t.Result)
	return t, err
}

// limits returns the configuration of the search.
func (s *Set) limits() (search.Config, error) {
	g := s.Goal
	low, high := 0.001, 1e6
	switch {
	case g.Setting == "speedup":
		high = 1000
	case closes(g.Setting):
		low = 1
	}
	c := search.Config{
		Low: cmp.Or(g.Low, low), High: cmp.Or(g.High, high), Whole: closes(g.Setting),
		MaxTrials: cmp.Or(g.MaxRuns, mostRuns), Repeats: repeats,
	}
	if s.Base.Virtual && s.recorded() && g.Setting == "speedup" { // a run would give the same result again
		c.Repeats = 1
	}
	if c.Start = min(max(1, c.Low), c.High); g.Low != 0 && g.High != 0 {
		c.Start = c.Low
	}
	if err := c.Check(); err != nil {
		return c, wrong("%v", err)
	}
	return c, nil
}

// next returns the next run.
func (s *Set) next(p Point, level float64, before []Trial, so search.Answer) Trial {
	t := Trial{Point: p.With(runfile.Value{Setting: s.Goal.Setting, Text: settings.FormatNumber(level)}), requests: s.Base.Pacing.Limit}
	t.Repeat = 1
	for i := range before {
		if before[i].Level() == level {
			t.Repeat++
		}
	}
	t.draw = crc32.ChecksumIEEE(fmt.Appendf(nil, "%v %d", level, t.Repeat)) // the same in any order of the runs
	concurrency := s.Base.MaxConcurrency
	if closes(s.Goal.Setting) {
		concurrency = int(level)
	}
	t.unmeasured = s.unmeasured(concurrency)
	if !s.recorded() && t.requests == 0 {
		t.requests = s.requests(level, before, so)
	}
	return t
}

// requests returns the number of requests of a run at a level: as many as its percentiles
// need, more once the answer is bracketed or if requests take long.
func (s *Set) requests(level float64, before []Trial, so search.Answer) int {
	least := s.least()
	most := mostLonger * float64(least)
	if so.Found && so.Limited {
		least *= longer
	}
	if closes(s.Goal.Setting) {
		return max(least, perSlot*int(level)) + (warmupRounds+1)*s.unmeasured(int(level))
	}
	n := level * rateSeconds
	if s.Base.Virtual {
		n = 0
	}
	if len(before) > 0 {
		n = max(n, level*perLatency*before[len(before)-1].Metrics.E2EL.Mean/1000)
	}
	return max(least, int(math.Ceil(min(n, most))))
}

// least returns the least number of requests of a run.
func (s *Set) least() int {
	if s.Goal.MinRequests > 0 {
		return s.Goal.MinRequests
	}
	least := leastRun
	for _, g := range s.Goal.Gates {
		least = max(least, g.RequestsNeeded())
	}
	if s.Base.Virtual {
		least *= virtualBy
	}
	return least
}

// unmeasured returns the number of unmeasured requests at the end of a run; those at its
// start are warmupRounds times as many.
func (s *Set) unmeasured(concurrency int) int {
	if !closes(s.Goal.Setting) || s.recorded() || s.Base.Window != (settings.Window{}) || s.Base.Output.NoChunkTimes {
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
