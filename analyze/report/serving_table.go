package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/run"
	"moontide/trace"
)

// CSV writes a line for each run: its name, its verdict, and its numbers under
// the names that they have in the summary. What was not measured is empty. The
// only errors are those of w.
func (runs ServingRuns) CSV(w io.Writer) error {
	figures := runs.figures()
	head := []string{"run", "verdict"}
	for _, f := range figures {
		head = append(head, f.key)
	}
	out := csv.NewWriter(w)
	out.Write(head)
	for _, run := range runs {
		line := []string{oneLine(run.Name), run.Result.Verdict.Level.String()}
		for _, f := range figures {
			cell := ""
			if x := f.value(run.Result); x.Set {
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
	for _, f := range runs.figures() {
		cells := []string{f.label}
		for _, run := range runs {
			cells = append(cells, f.format(run.Result))
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

// figureOf is one number of a run, by its key in the summary and its line in the
// block.
type figureOf struct {
	key, label string
	whole      bool
	value      func(r *run.Result) trace.Opt[float64]
}

func (f figureOf) format(r *run.Result) string {
	x := f.value(r)
	switch {
	case !x.Set:
		return absent
	case f.whole:
		return strconv.Itoa(int(x.Value))
	}
	return strconv.FormatFloat(x.Value, 'f', 2, 64)
}

// figures are the counts, the rates, and the statistics of the view of the first
// run.
func (runs ServingRuns) figures() []figureOf {
	if len(runs) == 0 {
		return nil
	}
	first := runs[0]
	figures := countFigures()
	if g := first.Result.Goodput; g != nil {
		figures = append(figures, goodputFigures(g)...)
	}
	metrics := first.View.metrics()
	for _, m := range []run.Metric{run.TTFTFromSchedule, run.E2ELFromSchedule, run.ScheduleLag, run.ClientLag, run.Held} {
		if !slices.Contains(metrics, m) {
			metrics = append(slices.Clone(metrics), m)
		}
	}
	for _, m := range metrics {
		for _, stat := range first.View.statistics() {
			figures = append(figures, figureOf{
				key:   strings.ToLower(stat.name) + "_" + string(m) + "_ms",
				label: stat.name + " " + metricWords[m].name + " (ms)",
				value: func(r *run.Result) trace.Opt[float64] {
					d := r.Latency(m)
					return trace.Opt[float64]{Value: stat.of(d), Set: d.Count > 0}
				},
			})
		}
	}
	return figures
}

func countFigures() []figureOf {
	rate := func(key, label string, of func(r *run.Result) trace.Opt[float64]) figureOf {
		return figureOf{key, label, false, of}
	}
	whole := func(key, label string, of func(r *run.Result) int) figureOf {
		return figureOf{key, label, true, func(r *run.Result) trace.Opt[float64] { return trace.Some(float64(of(r))) }}
	}
	return []figureOf{
		whole("completed", "Successful requests", func(r *run.Result) int { return r.Completed }),
		whole("failed", "Failed requests", func(r *run.Result) int { return r.Failed }),
		rate("duration", "Benchmark duration (s)", func(r *run.Result) trace.Opt[float64] { return trace.Some(r.Duration.Seconds()) }),
		whole("total_input_tokens", "Total input tokens", func(r *run.Result) int { return r.Input }),
		whole("total_output_tokens", "Total generated tokens", func(r *run.Result) int { return r.Output }),
		{"cached_tokens", "Total cached tokens", true, func(r *run.Result) trace.Opt[float64] {
			return trace.Opt[float64]{Value: float64(r.Cached.Value), Set: r.Cached.Set}
		}},
		rate("request_throughput", "Request throughput (req/s)", func(r *run.Result) trace.Opt[float64] { return r.RequestRate }),
		rate("output_throughput", "Output token throughput (tok/s)", func(r *run.Result) trace.Opt[float64] { return r.OutputRate }),
		rate("max_output_tokens_per_s", "Peak output token throughput (tok/s)", func(r *run.Result) trace.Opt[float64] { return trace.Some(r.PeakOutputRate) }),
		whole("max_concurrent_requests", "Peak concurrent requests", func(r *run.Result) int { return r.PeakConcurrency }),
		rate("total_token_throughput", "Total token throughput (tok/s)", func(r *run.Result) trace.Opt[float64] { return r.TotalRate }),
	}
}

// goodputFigures are those of objectives, which all runs have alike.
func goodputFigures(g *run.Goodput) []figureOf {
	figures := []figureOf{
		{"request_goodput", "Request goodput (req/s)", false, func(r *run.Result) trace.Opt[float64] { return r.Goodput.Rate }},
		{"good_share", "Share that meets every objective", false, func(r *run.Result) trace.Opt[float64] { return r.Goodput.Share(r.Goodput.Good) }},
	}
	for i, o := range g.Objectives {
		figures = append(figures, figureOf{
			"good_share_" + string(o.Metric), fmt.Sprintf("Share with %s at most %s ms", metricWords[o.Metric].name, plainNumber(o.LimitMS)), false,
			func(r *run.Result) trace.Opt[float64] { return r.Goodput.Share(r.Goodput.Objectives[i].Met) },
		})
	}
	return figures
}
