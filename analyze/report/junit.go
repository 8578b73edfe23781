package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

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
	Failure *junitFailure `xml:"failure,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes JUnit XML: a test suite for each search, whose test case fails if no load
// meets the objectives, otherwise one for each run, with a test case for the verdict, which
// fails if the run is INVALID or incomplete, and one for each gate.
func (o OutcomeJSON) JUnit(w io.Writer) error {
	all := junitSuites{Name: "moontide"}
	for _, s := range o.Searches {
		name := cmp.Or(strings.TrimSuffix(s.Deployment+" "+s.Shape, " "), "search")
		all.add(junitSuite{Name: name}.with("largest "+s.Find, s.Text, junitFailed(s.Outcome != outcomePass, s.Outcome, s.Text)))
	}
	for _, r := range o.Runs {
		if o.Searches != nil {
			break
		}
		s := junitSuite{Name: orUnnamed(r.Name)}
		if seconds := r.Metrics["duration"]; seconds != nil {
			s.Time = fmt.Sprintf("%.3f", *seconds)
		}
		evidence, reasons := r.Verdict, []string(nil)
		for _, e := range r.Evidence {
			evidence += "\n" + e.Level + ": " + e.Text
			if e.Level == r.Verdict {
				reasons = append(reasons, e.Text)
			}
		}
		failure := junitFailed(r.Outcome == outcomeInvalid, r.Verdict, strings.Join(reasons, "; "))
		if r.Outcome == outcomeIncomplete {
			failure = junitFailed(true, r.Outcome, strings.Join(append([]string{"the run is incomplete"}, r.Notes...), "; "))
		}
		s = s.with("verdict", evidence, failure)
		for _, g := range r.Gates {
			must := map[bool]string{true: " must hold", false: " must not hold"}[g.MustHold]
			s = s.with(g.Condition+must, g.Text, junitFailed(!g.Passed, "gate", g.Text))
		}
		all.add(s)
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

// JUnit writes the outcome of the runs as JUnit XML.
func (runs Runs) JUnit(w io.Writer) error { return runs.Outcome().JUnit(w) }

// JUnit writes the outcome of the runs and searches as JUnit XML.
func (s Set) JUnit(w io.Writer) error { return s.Outcome().JUnit(w) }

func (all *junitSuites) add(s junitSuite) {
	all.Tests, all.Failures, all.Suites = all.Tests+s.Tests, all.Failures+s.Failures, append(all.Suites, s)
}

// with returns the suite with a test case, which passed if failure is nil.
func (s junitSuite) with(name, output string, failure *junitFailure) junitSuite {
	s.Cases = append(s.Cases, junitCase{Class: s.Name, Name: name, Output: output + "\n", Failure: failure})
	if s.Tests++; failure != nil {
		s.Failures++
	}
	return s
}

func junitFailed(failed bool, kind, text string) *junitFailure {
	if !failed {
		return nil
	}
	return &junitFailure{Type: kind, Message: text, Text: text}
}
