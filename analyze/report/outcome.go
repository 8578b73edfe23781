package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/slo"
	"moontide/replay/runfile"
	"moontide/trace"
)

// OutcomeVersion is the version of [OutcomeJSON]. It changes when a key is removed or
// changes its meaning, not when one is added.
const OutcomeVersion = 2

// OutcomeJSON is the outcome of a command that measures runs, for pipelines.
type OutcomeJSON struct {
	Version int `json:"version"` // of this schema; it does not change when keys are added
	// Outcome is the first of incomplete, invalid, fail and pass that applies to a run, or
	// to a search of bench --find. A run is incomplete if it ended early or no request
	// succeeded, and fails if it did not pass a gate. Deployments in simulate fail if none
	// passes all gates.
	Outcome  string              `json:"outcome"`
	Runs     []OutcomeRunJSON    `json:"runs"`
	Searches []OutcomeSearchJSON `json:"searches"` // of bench --find; null otherwise
	// HeldOutErrors has, by metric, the error that nine in ten predictions of held-out
	// measurements did not exceed, as a share; empty unless engines were fitted.
	HeldOutErrors map[string]float64 `json:"held_out_errors"`
}

// OutcomeSearchJSON is a search for the largest load that meets the objectives. In its
// runs, a gate that does not pass is no failure.
type OutcomeSearchJSON struct {
	Find       string `json:"find"`       // rate, speedup or concurrency
	Deployment string `json:"deployment"` // label; "" if there is only one
	Shape      string `json:"shape"`      // ISL:OSL; "" if there is only one
	Outcome    string `json:"outcome"`    // fail: no load meets the objectives
	// Load is the largest load at which all runs meet the objectives, null if there is none.
	// MissedAt is the next one tried, at which none does; null if there is none.
	Load     *float64   `json:"load"`
	MissedAt *float64   `json:"missed_at"`
	Gates    []GateJSON `json:"gates"`    // the objectives at MissedAt
	Complete bool       `json:"complete"` // false: more runs would narrow the interval
	Text     string     `json:"text"`     // the answer in words
	Runs     []string   `json:"runs"`     // names, in order
}

// OutcomeRunJSON is one run. Its folder has the details.
type OutcomeRunJSON struct {
	Name           string              `json:"name"`   // of the folder
	Folder         string              `json:"folder"` // path
	Outcome        string              `json:"outcome"`
	Verdict        string              `json:"verdict"`  // VALID, SUSPECT or INVALID
	Evidence       []doc.Evidence      `json:"evidence"` // of the verdict
	Gates          []GateJSON          `json:"gates"`    // null without --slo and --fail-if
	Notes          []string            `json:"notes"`
	Model          string              `json:"model"`
	Simulated      bool                `json:"simulated"`
	Axes           map[string]string   `json:"axes"`            // what differs between the runs: the level of a load, deployment, shape
	Trace          string              `json:"trace"`           // name
	MaxConcurrency int                 `json:"max_concurrency"` // limit of requests in flight; 0 is none
	Metrics        map[string]*float64 `json:"metrics"`         // by the names that gates use; null if not measured
}

// The outcomes of runs, the worst first.
const (
	outcomeIncomplete = "incomplete"
	outcomeInvalid    = "invalid"
	outcomeFail       = "fail"
	outcomePass       = "pass"
)

// Outcome returns the outcome of the runs.
func (runs Runs) Outcome() OutcomeJSON {
	all := OutcomeJSON{Version: OutcomeVersion, Outcome: outcomePass, Runs: []OutcomeRunJSON{}, HeldOutErrors: map[string]float64{}}
	for _, r := range runs {
		one := r.outcomeJSON()
		all.Outcome = worse(all.Outcome, one.Outcome)
		all.Runs = append(all.Runs, one)
	}
	return all
}

// Outcome returns the outcome of the runs and searches.
func (s Set) Outcome() OutcomeJSON {
	all := s.Runs().Outcome()
	if s.searched() {
		all.Outcome = outcomePass
		for _, g := range s.Groups {
			all.Outcome = worse(all.Outcome, g.outcome())
			all.Searches = append(all.Searches, g.json())
		}
	}
	if len(s.Incomplete) > 0 {
		all.Outcome = outcomeIncomplete
	}
	if s.Axis == Deployments {
		all.Outcome = map[bool]string{true: outcomePass, false: outcomeFail}[len(s.FailedGates()) == 0]
		for i, p := range s.Groups[0].Points {
			s.deploymentJSON(p, &all.Runs[i])
		}
	}
	maps.Copy(all.HeldOutErrors, s.HeldOut)
	return all
}

// Runs returns the runs, in order.
func (s Set) Runs() (all Runs) {
	for _, p := range s.points {
		all = append(all, p.Run)
	}
	return all
}

// deploymentJSON fills in the JSON of a simulated deployment.
func (s *Set) deploymentJSON(p *Point, j *OutcomeRunJSON) {
	j.Axes, j.Gates, j.Metrics = map[string]string{Deployments: p.AxisValue}, gateObjects(p.Judgements), map[string]*float64{}
	for i, m := range s.Metrics {
		j.Metrics[m.Key] = pointer(p.Values[i])
	}
	if j.Outcome == outcomePass && p.Outcome == "missed" {
		j.Outcome = outcomeFail
	}
}

// json returns the outcome of the search.
func (g *Group) json() OutcomeSearchJSON {
	f := g.Found
	j := OutcomeSearchJSON{
		Find: runfile.LoadName(f.Setting), Deployment: g.Label, Shape: g.Shape, Outcome: g.outcome(), Complete: f.Answer.Complete,
		Text: g.answer(), Gates: []GateJSON{}, Runs: []string{},
	}
	if f.Answer.Found {
		load := f.Load(f.Answer.Level)
		j.Load = &load
	}
	if f.Answer.Limited {
		missed := f.Load(f.Answer.Missed)
		j.MissedAt, j.Gates = &missed, gateObjects(g.atLimit().Judgements)
	}
	for _, l := range f.Trials {
		j.Runs = append(j.Runs, l.Folder())
	}
	return j
}

// Invalid reports whether a run of a sweep is INVALID, or ended a search.
func (s Set) Invalid() bool {
	return slices.ContainsFunc(s.Groups, func(g *Group) bool {
		if g.Found != nil {
			return g.Found.Invalid != nil
		}
		return s.Axis != Deployments && slices.ContainsFunc(g.Points, func(p *Point) bool { return p.Result.Verdict.Level == measure.Invalid })
	})
}

// pointer returns nil for values that JSON cannot have.
func pointer(v trace.Opt[float64]) *float64 {
	if !v.Set || math.IsInf(v.Value, 0) || math.IsNaN(v.Value) {
		return nil
	}
	return &v.Value
}

// worse returns the worse of two outcomes.
func worse(a, b string) string {
	order := []string{outcomeIncomplete, outcomeInvalid, outcomeFail, outcomePass}
	return order[min(slices.Index(order, a), slices.Index(order, b))]
}

func (r Run) outcome() string {
	switch {
	case !r.Info.Finished() || r.Result.Completed == 0:
		return outcomeIncomplete
	case r.Result.Verdict.Level == measure.Invalid:
		return outcomeInvalid
	case len(slo.Failed(r.Judgements())) > 0:
		return outcomeFail
	}
	return outcomePass
}

func (r Run) outcomeJSON() OutcomeRunJSON {
	j := OutcomeRunJSON{
		Name: r.Name, Folder: r.Dir, Outcome: r.outcome(), Verdict: r.Result.Verdict.Level.String(), Gates: gateObjects(r.Judgements()), Notes: noteTexts(r.notes()),
		Model: r.Info.ModelText(), Simulated: r.Info.Target.Simulated, Trace: r.Info.Trace.Name, MaxConcurrency: r.Info.Settings.MaxConcurrency,
		Axes: map[string]string{}, Evidence: verdictOf(r.Result.Verdict).Evidence, Metrics: map[string]*float64{},
	}
	if p := r.Info.Point; len(p.Values) > 0 {
		load, _ := p.Load()
		j.Axes = map[string]string{runfile.LoadName(load): p.Get(load), "deployment": p.Label(), "shape": p.Shape()}
	}
	for _, m := range r.outcomeMetrics() {
		j.Metrics[m.Key] = pointer(m.Value(r.Result))
	}
	return j
}

// outcomeMetrics returns the metrics of the outcome: counts and rates, the latencies'
// statistics and those that gates limit.
func (r Run) outcomeMetrics() []measure.Metric {
	all := measure.BlockMetrics(nil)
	for _, key := range []string{"offered_rate", "achieved_rate", "failed_share", "abandoned", "cached_share"} {
		all = append(all, measure.MustMetric(key))
	}
	for _, l := range measure.Latencies {
		for _, s := range r.summaryStatistics() {
			all = append(all, l.Metric(s))
		}
	}
	for _, g := range r.View.Gates {
		all = append(all, g.Metric)
	}
	return all
}

// Judgements applies the gates of the view to the run. An incomplete run passes none
// unless it is forced, because the missing requests could have failed it.
func (r Run) Judgements() (all []slo.Judgement) {
	for _, g := range r.View.Gates {
		if r.Info.Finished() || g.Force {
			all = append(all, g.Judge(r.Result))
		} else {
			all = append(all, g.Fail("the run is incomplete"))
		}
	}
	return all
}

// gates returns the outcome of gates, nil if there are none.
func gates(all []slo.Judgement) *doc.Verdict {
	if len(all) == 0 {
		return nil
	}
	v := &doc.Verdict{Level: gateLevel(all)}
	for _, j := range all {
		v.Evidence = append(v.Evidence, gateEvidence("", j, "FAIL"))
	}
	return v
}

// gateEvidence returns the outcome of a gate; failed is the level of those that failed.
func gateEvidence(where string, j slo.Judgement, failed string) doc.Evidence {
	if j.Passed {
		failed = "PASS"
	}
	return doc.Evidence{Level: failed, Text: where + j.String()}
}

// gateLevel returns PASS if all gates passed.
func gateLevel(all []slo.Judgement) string { return passLevel(len(slo.Failed(all)) == 0) }

func passLevel(passed bool) string {
	if passed {
		return "PASS"
	}
	return "FAIL"
}

// GateJSON is a gate applied to a run, a deployment or the difference of two runs. Value,
// limit and margin of a relative change are shares.
type GateJSON struct {
	Condition string   `json:"condition"`
	MustHold  bool     `json:"must_hold"` // false: it must not hold
	Passed    bool     `json:"passed"`
	Metric    string   `json:"metric"`
	Limit     float64  `json:"limit"`
	Value     *float64 `json:"value"`  // null if it is unknown
	Margin    *float64 `json:"margin"` // negative if the gate failed
	Text      string   `json:"text"`
}

func gateObjects(all []slo.Judgement) (list []GateJSON) {
	for _, j := range all {
		g := j.Gate
		list = append(list, GateJSON{g.Condition.String(), !g.Forbidden, j.Passed, g.Metric.Key, g.Limit, pointer(j.Value), pointer(j.Margin), j.String()})
	}
	return list
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr,omitempty"` // seconds
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure"`
	Output  string        `xml:"system-out"`
}

type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteOutcome writes the outcome of the runs as one JSON object.
func (runs Runs) WriteOutcome(w io.Writer) error { return writeJSON(w, runs.Outcome()) }

// JSON writes the outcome as one JSON object.
func (s Set) JSON(w io.Writer) error { return writeJSON(w, s.Outcome()) }

// JUnit writes the outcome of the runs as JUnit XML.
func (runs Runs) JUnit(w io.Writer) error { return runs.Outcome().JUnit(w) }

// JUnit writes the outcome of the runs and searches as JUnit XML.
func (s Set) JUnit(w io.Writer) error { return s.Outcome().JUnit(w) }

// JUnit writes JUnit XML: a test suite for each search, whose test case fails if no load
// meets the objectives, otherwise one for each run, with a test case for the verdict, which
// fails if the run is INVALID or incomplete, and one for each gate.
func (o OutcomeJSON) JUnit(w io.Writer) error {
	all := junitSuites{Name: "moontide"}
	for _, s := range o.Searches {
		suite := junitSuite{Name: cmp.Or(strings.TrimSuffix(s.Deployment+" "+s.Shape, " "), "search")}
		suite.add("largest "+s.Find, s.Text, s.Outcome != outcomePass, s.Outcome, s.Text)
		all.Suites = append(all.Suites, suite)
	}
	if o.Searches == nil {
		for _, r := range o.Runs {
			all.Suites = append(all.Suites, r.junit())
		}
	}
	for _, s := range all.Suites {
		all.Tests, all.Failures = all.Tests+s.Tests, all.Failures+s.Failures
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	}
	if err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	return nil
}

func (r OutcomeRunJSON) junit() junitSuite {
	s := junitSuite{Name: orUnnamed(r.Name)}
	if seconds := r.Metrics["duration"]; seconds != nil {
		s.Time = fmt.Sprintf("%.3f", *seconds)
	}
	evidence, failure, reasons := r.Verdict, r.Verdict, []string(nil)
	for _, e := range r.Evidence {
		evidence += "\n" + e.Level + ": " + e.Text
		if e.Level == r.Verdict {
			reasons = append(reasons, e.Text)
		}
	}
	if r.Outcome == outcomeIncomplete {
		failure, reasons = r.Outcome, append([]string{"the run is incomplete"}, r.Notes...)
	}
	s.add("verdict", evidence, r.Outcome == outcomeIncomplete || r.Outcome == outcomeInvalid, failure, strings.Join(reasons, "; "))
	for _, g := range r.Gates {
		s.add(g.Condition+map[bool]string{true: " must hold", false: " must not hold"}[g.MustHold], g.Text, !g.Passed, "gate", g.Text)
	}
	return s
}

// add adds a test case.
func (s *junitSuite) add(name, output string, failed bool, kind, text string) {
	c := junitCase{Class: s.Name, Name: name, Output: output + "\n"}
	if failed {
		c.Failure = &junitFailure{Type: kind, Message: text, Text: text}
		s.Failures++
	}
	s.Tests, s.Cases = s.Tests+1, append(s.Cases, c)
}
