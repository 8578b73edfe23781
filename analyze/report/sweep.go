package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/run"
	"moontide/trace"
)

// Sweep is what runs measured that differ in how much load there was, of one
// deployment or of several that are compared with the first.
type Sweep struct {
	// Subject says what is common to all runs, in a line.
	Subject string
	// Axis heads the column of the levels: Concurrency.
	Axis        string
	Deployments []Deployment
}

// Deployment is the runs against one endpoint.
type Deployment struct {
	Label  string // "" for the only one
	Points []SweepPoint
}

// SweepPoint is one run.
type SweepPoint struct {
	Level  string // the same in all deployments
	Result *run.Result
	Notes  []string // what else to know of it
}

// sweepMetrics are the columns of the concurrency table as they are published,
// but for the first.
var sweepMetrics = func() (all []run.Metric) {
	for _, key := range []string{"request_throughput", "output_throughput", "mean_e2el_ms", "p99_e2el_ms", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms"} {
		all = append(all, run.MustMetric(key))
	}
	return all
}()

// SweepLine is a run in a line, for those who wait for the table.
func SweepLine(r *run.Result) string {
	value := func(key string) string { return optionalPlain(run.MustMetric(key).Value(r)) }
	line := fmt.Sprintf("%s: %s req/s, %s tok/s, mean E2EL %s ms, mean TTFT %s ms, mean TPOT %s ms, %d failed", r.Verdict.Level,
		value("request_throughput"), value("output_throughput"), value("mean_e2el_ms"), value("mean_ttft_ms"), value("mean_tpot_ms"), r.Failed)
	if r.Failed > 0 {
		line += ": " + failures(r)
	}
	return line
}

// failures are the requests that failed by class, each with an example.
func failures(r *run.Result) string {
	var classes []string
	for _, class := range slices.Sorted(maps.Keys(r.Errors)) {
		text := fmt.Sprintf("%s %d", oneLine(string(class)), r.Errors[class])
		if example := r.Examples[class]; example != "" {
			text += " (" + oneLine(example) + ")"
		}
		classes = append(classes, text)
	}
	return strings.Join(classes, ", ")
}

// columns are the headings of a table of the sweep.
func (s Sweep) columns() []string {
	columns := []string{s.Axis}
	for _, c := range sweepMetrics {
		columns = append(columns, c.Column())
	}
	return columns
}

// unproven marks the level of a run whose verdict is not VALID.
const unproven = "*"

// mark is the level, and whether to be careful.
func (p SweepPoint) mark() string {
	if p.Result.Verdict.Level != run.Valid {
		return p.Level + unproven
	}
	return p.Level
}

// row is a run in its table. Where base is given, each value has its ratio to
// the one there.
func (p SweepPoint) row(base *run.Result) []string {
	cells := []string{p.mark()}
	for _, c := range sweepMetrics {
		value := c.Value(p.Result)
		cell := optionalPlain(value)
		if base != nil {
			if of := c.Value(base); value.Set && of.Set && of.Value > 0 {
				cell += fmt.Sprintf(" (%.2fx)", value.Value/of.Value)
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// optionalPlain has no commas between thousands: tables go into spreadsheets.
func optionalPlain(v trace.Opt[float64]) string {
	if !v.Set {
		return absent
	}
	return strconv.FormatFloat(v.Value, 'f', 2, 64)
}

// table is the table of one deployment.
func (s Sweep) table(d Deployment) table {
	t := table{columns: s.columns()}
	for _, p := range d.Points {
		t.add(p.row(nil)...)
	}
	return t
}

// sideBySide has the runs of a level under each other, with the ratios to the
// first deployment.
func (s Sweep) sideBySide() table {
	t := table{columns: slices.Insert(s.columns(), 1, "Deployment")}
	for _, base := range s.Deployments[0].Points {
		t.add(slices.Insert(base.row(nil), 1, oneLine(s.Deployments[0].Label))...)
		for _, d := range s.Deployments[1:] {
			for _, p := range d.Points {
				if p.Level == base.Level {
					t.add(slices.Insert(p.row(base.Result), 1, oneLine(d.Label))...)
				}
			}
		}
	}
	return t
}

// remarks say what of the figures cannot be taken as it is: what is noted of a
// run, failed requests, and runs that are not VALID with what speaks against them.
func (s Sweep) remarks() []string {
	var remarks []string
	for _, d := range s.Deployments {
		for _, p := range d.Points {
			where := fmt.Sprintf("%s %s", s.Axis, p.Level)
			if d.Label != "" {
				where = oneLine(d.Label) + ", " + where
			}
			for _, note := range p.Notes {
				remarks = append(remarks, fmt.Sprintf("%s: %s.", where, oneLine(note)))
			}
			if r := p.Result; r.Failed > 0 {
				remarks = append(remarks, fmt.Sprintf("%s: %d of %d requests failed: %s.", where, r.Failed, r.Completed+r.Failed, failures(r)))
			}
			if v := p.Result.Verdict; v.Level != run.Valid {
				remarks = append(remarks, fmt.Sprintf("%s %s: %s: %s.", unproven, where, v.Level, strings.Join(against(v), "; ")))
			}
		}
	}
	return remarks
}

// against is the evidence that made a verdict what it is.
func against(v run.Verdict) []string {
	var texts []string
	for _, e := range v.Evidence {
		if e.Level == v.Level {
			texts = append(texts, oneLine(e.Text))
		}
	}
	return texts
}

// verdict is the worst of all runs.
func (s Sweep) verdict() string {
	worst, runs := run.Valid, 0
	for _, d := range s.Deployments {
		for _, p := range d.Points {
			worst = max(worst, p.Result.Verdict.Level)
			runs++
		}
	}
	return fmt.Sprintf("Verdict: %s, the worst of %s.", worst, counted(runs, "run"))
}

// CSV writes one table of all runs: the columns of the concurrency table, and
// behind them what has no place there. What was not measured is empty. The
// errors are those of w.
func (s Sweep) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	labels := func(label string) []string {
		if len(s.Deployments) == 1 && s.Deployments[0].Label == "" {
			return nil
		}
		return []string{oneLine(label)}
	}
	out.Write(slices.Concat(labels("Deployment"), s.columns(), []string{"Successful Requests", "Failed Requests", "Verdict"}))
	for _, d := range s.Deployments {
		for _, p := range d.Points {
			r := p.Result
			line := append(labels(d.Label), p.Level)
			for _, c := range sweepMetrics {
				line = append(line, plain(c.Value(r)))
			}
			out.Write(append(line, strconv.Itoa(r.Completed), strconv.Itoa(r.Failed), r.Verdict.Level.String()))
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing the sweep: %w", err)
	}
	return nil
}
