package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"moontide/analyze/run"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Time      string      `xml:"time,attr"` // seconds
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes JUnit XML: a test suite for each run, with a test case for the verdict,
// which an INVALID or incomplete run fails, and one for each gate.
func (runs Runs) JUnit(w io.Writer) error {
	var suites []junitSuite
	for _, r := range runs {
		suites = append(suites, r.junit())
	}
	return writeJUnit(w, suites)
}

// JUnit writes JUnit XML: a test suite for each run or, of a search, one whose test case fails
// if no load meets the objectives.
func (s Set) JUnit(w io.Writer) error {
	if !s.searched() {
		return s.Runs().JUnit(w)
	}
	var conditions []string
	for _, g := range s.Gates {
		conditions = append(conditions, g.String())
	}
	var suites []junitSuite
	for i := range s.Groups {
		g := &s.Groups[i]
		suite := junitSuite{Name: cmp.Or(g.name(), "search"), Timestamp: g.Points[0].Info.Started.UTC().Format(time.RFC3339)}
		seconds := 0.0
		for _, p := range g.Points {
			seconds += p.Result.Duration.Seconds()
		}
		suite.Time = fmt.Sprintf("%.3f", seconds)
		var failure *junitFailure
		if outcome := g.outcome(); outcome != outcomePass {
			failure = &junitFailure{Type: outcome, Message: g.answer(), Text: g.answer()}
		}
		suite.add(fmt.Sprintf("largest %s with %s", s.Axis, strings.Join(conditions, " and ")), g.answer()+"\n", failure)
		suites = append(suites, suite)
	}
	return writeJUnit(w, suites)
}

func writeJUnit(w io.Writer, suites []junitSuite) error {
	all := junitSuites{Name: "moontide", Suites: suites}
	for _, s := range suites {
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

func (r Run) junit() junitSuite {
	s := junitSuite{Name: r.name(), Time: fmt.Sprintf("%.3f", r.Result.Duration.Seconds()), Timestamp: r.Info.Started.UTC().Format(time.RFC3339)}
	v := r.Result.Verdict
	var evidence strings.Builder
	for _, e := range v.Evidence {
		fmt.Fprintf(&evidence, "%s: %s\n", e.Level, e.Text)
	}
	s.add("verdict", v.Level.String()+"\n"+evidence.String(), r.verdictFailure())
	for _, j := range r.Judgements() {
		var failure *junitFailure
		if !j.Passed {
			failure = &junitFailure{Type: "gate", Message: j.String(), Text: j.String()}
		}
		s.add(j.Gate.String(), j.String()+"\n", failure)
	}
	return s
}

// add adds a test case, which passed if failure is nil.
func (s *junitSuite) add(name, output string, failure *junitFailure) {
	s.Cases = append(s.Cases, junitCase{Class: s.Name, Name: name, Output: output, Failure: failure})
	if s.Tests++; failure != nil {
		s.Failures++
	}
}

// verdictFailure returns nil unless the run is incomplete or INVALID.
func (r Run) verdictFailure() *junitFailure {
	switch r.outcome() {
	case outcomeIncomplete:
		text := "the run is incomplete"
		if r.Info.Failure != "" {
			text += ": " + r.Info.Failure
		} else if r.Result.Completed == 0 {
			text = "no request succeeded"
		}
		return &junitFailure{Type: outcomeIncomplete, Message: text, Text: text}
	case outcomeInvalid:
		reasons := r.Result.Verdict.Reasons()
		return &junitFailure{Type: run.Invalid.String(), Message: strings.Join(reasons, "; "), Text: strings.Join(reasons, "\n")}
	}
	return nil
}
