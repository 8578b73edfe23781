package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/run"
)

// CSV writes a line for each run: its name, its verdict, and its numbers under
// the names that they have in the summary. What was not measured is empty. The
// only errors are those of w.
func (runs ServingRuns) CSV(w io.Writer) error {
	metrics := runs.metrics()
	head := []string{"run", "verdict"}
	for _, m := range metrics {
		head = append(head, m.Key)
	}
	out := csv.NewWriter(w)
	out.Write(head)
	for _, run := range runs {
		line := []string{oneLine(run.Name), run.Result.Verdict.Level.String()}
		for _, m := range metrics {
			cell := ""
			if x := m.Value(run.Result); x.Set {
				cell = strconv.FormatFloat(x.Value, 'f', -1, 64)
			}
			line = append(line, cell)
		}
		out.Write(line)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// Markdown writes one table with a column for each run, and the evidence of
// their verdicts. The only errors are those of w.
func (runs ServingRuns) Markdown(w io.Writer) error {
	d := document{title: "Serving benchmark result", subject: runs.subject()}
	d.section("Verdict")
	for _, run := range runs {
		name := ""
		if len(runs) > 1 {
			name = oneLine(run.Name) + ": "
		}
		d.paragraph(name + run.Result.Verdict.Level.String())
		d.table(evidenceTable(run.Result.Verdict))
	}
	d.section("Result")
	d.table(runs.table())
	return write(w, d.markdown())
}

// table has a column for each run and a line for each of its figures.
func (runs ServingRuns) table() table {
	t := table{columns: []string{"Metric"}}
	for _, run := range runs {
		t.columns = append(t.columns, orUnnamed(run.Name))
	}
	verdicts := []string{"Verdict"}
	for _, run := range runs {
		verdicts = append(verdicts, run.Result.Verdict.Level.String())
	}
	t.add(verdicts...)
	for _, m := range runs.metrics() {
		cells := []string{m.Heading()}
		for _, run := range runs {
			cells = append(cells, cell(m, run.Result))
		}
		t.add(cells...)
	}
	return t
}

func evidenceTable(v run.Verdict) table {
	t := table{columns: []string{"", "Evidence"}, words: true, levels: true}
	for _, e := range v.Evidence {
		t.add(e.Level.String(), oneLine(e.Text))
	}
	return t
}

// subject says what was run, in a line.
func (runs ServingRuns) subject() string {
	var all []string
	for _, run := range runs {
		s := fmt.Sprintf("%s against %s", orUnnamed(run.Run.Trace.Name), orUnnamed(run.Run.Target.Model))
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, "; ")
}

func orUnnamed(name string) string {
	if name = oneLine(name); name == "" {
		return "(unnamed)"
	}
	return name
}

// cell is a metric of a run with two decimals, or the whole number that it is.
func cell(m run.Metric, r *run.Result) string {
	x := m.Value(r)
	switch {
	case !x.Set:
		return absent
	case m.Unit == run.Count:
		return strconv.Itoa(int(x.Value))
	}
	return strconv.FormatFloat(x.Value, 'f', 2, 64)
}

// metrics are the counts, the rates, and the statistics of the view of the first
// run.
func (runs ServingRuns) metrics() []run.Metric {
	if len(runs) == 0 {
		return nil
	}
	first := runs[0]
	var objectives []run.Objective
	if g := first.Result.Goodput; g != nil {
		for _, o := range g.Objectives {
			objectives = append(objectives, o.Objective)
		}
	}
	metrics := run.BlockMetrics(objectives)
	latencies := slices.Clone(first.View.metrics())
	for _, l := range run.ScheduleLatencies {
		if !slices.Contains(latencies, l) {
			latencies = append(latencies, l)
		}
	}
	for _, l := range latencies {
		for _, stat := range first.View.statistics() {
			metrics = append(metrics, l.Metric(stat))
		}
	}
	return metrics
}
