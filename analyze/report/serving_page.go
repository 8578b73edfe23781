package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/analyze/run"
	"moontide/replay/runfile"
	"moontide/trace/stats"
)

// HTML writes the runs as one page that needs no network: verdict and evidence
// first, then the result, distributions, the run over time, its requests, the
// prefix cache, and what the run was made with. Several runs begin with a table
// of all. Results must have been computed with Options.Detail. A page is bounded
// in size, however long a run is. The errors are those of w.
func (runs ServingRuns) HTML(w io.Writer) error {
	d := &document{title: "Serving benchmark", subject: runs.subject()}
	if len(runs) > 1 {
		runs.addComparison(d)
	}
	for _, run := range runs {
		s := servingPage{document: d, ServingRun: run}
		if len(runs) > 1 {
			s.prefix = orUnnamed(run.Name) + ": "
		}
		s.all()
	}
	page, err := d.html()
	if err != nil {
		return err
	}
	return write(w, page)
}

// addComparison puts the runs side by side.
func (runs ServingRuns) addComparison(d *document) {
	d.section("Runs")
	d.table(runs.table())
}

// servingPage writes what a page says of one run.
type servingPage struct {
	*document
	ServingRun
	prefix string // of the titles of sections
}

func (s *servingPage) all() {
	s.verdict()
	s.result()
	s.distributions()
	s.overTime()
	s.timeline()
	s.kinds()
	s.cache()
	s.server()
	s.configuration()
}

func (s *servingPage) begin(title string) { s.section(s.prefix + title) }

func (s *servingPage) verdict() {
	r := s.Result
	s.begin("Verdict: " + r.Verdict.Level.String())
	s.sections[len(s.sections)-1].level = r.Verdict.Level.String()
	worstFirst := slices.Clone(r.Verdict.Evidence)
	slices.SortStableFunc(worstFirst, func(a, b run.Evidence) int { return int(b.Level - a.Level) })
	s.table(evidenceTable(run.Verdict{Evidence: worstFirst}))
	var b servingBlock
	b.estimates(r)
	b.window(r)
	b.run(s.Run)
	b.calibrated(s.Run, r)
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSpace(line); line != "" {
			s.paragraph(oneLine(line))
		}
	}
}

func (s *servingPage) result() {
	r := s.Result
	s.begin("Serving benchmark result")
	s.headlines()
	for _, m := range run.BlockMetrics(nil) {
		x := m.Value(r)
		value := absent
		if x.Set && m.Unit == run.Count {
			value = grouped(int(x.Value))
		} else if x.Set {
			value = decimals(x.Value, 2)
		}
		s.row(m.Label, value, string(m.Unit), "")
	}
	s.latencies(run.Latencies)
	s.objectives()
	s.failures()
}

// headlines are what is asked for first.
func (s *servingPage) headlines() {
	r := s.Result
	failed := "none failed"
	if r.Failed > 0 {
		failed = grouped(r.Failed) + " failed"
	}
	all := []headline{
		{"Requests", grouped(r.Completed), "", failed},
		{"Request throughput", optional(r.RequestRate, 2), "req/s", fmt.Sprintf("at most %s in flight", grouped(r.PeakConcurrency))},
		{"Output throughput", optional(r.OutputRate, 0), "tok/s", fmt.Sprintf("%s in the best second", decimals(r.PeakOutputRate, 0))},
	}
	for _, m := range run.VLLMLatencies {
		if d := r.Latency(m); d.Count > 0 {
			all = append(all, headline{
				"Median " + m.Label(), decimals(d.Quantile(0.5), 1), "ms", decimals(d.Quantile(0.99), 1) + " ms at p99",
			})
		}
	}
	s.append(part{headlines: all})
}

// latencies is a table of metrics that were measured, in milliseconds.
func (s *servingPage) latencies(metrics []run.Latency) {
	percentiles := s.View.Percentiles
	if percentiles == nil {
		percentiles = []float64{50, 90, 99}
	}
	t := table{columns: []string{"ms", "Mean", "Std", "Min"}}
	for _, p := range percentiles {
		t.columns = append(t.columns, "P"+percentileName(p))
	}
	t.columns = append(t.columns, "Max")
	for _, m := range metrics {
		d := s.Result.Latency(m)
		if d.Count == 0 {
			continue
		}
		cells := []string{m.Label(), decimals(d.Mean, 2), decimals(d.Std, 2), decimals(d.Min, 2)}
		for _, p := range percentiles {
			cells = append(cells, decimals(d.Quantile(p/100), 2))
		}
		t.add(append(cells, decimals(d.Max, 2))...)
	}
	if len(t.rows) > 0 {
		s.table(t)
	}
}

func (s *servingPage) objectives() {
	g := s.Result.Goodput
	if g == nil {
		return
	}
	t := table{columns: []string{"Objective", "Requests", "Share"}}
	for _, o := range g.Objectives {
		t.add(fmt.Sprintf("%s at most %s ms", o.Latency.Label(), plainNumber(o.LimitMS)), grouped(o.Met), optionalPercent(g.Share(o.Met))+" %")
	}
	t.add("all of them", grouped(g.Good), optionalPercent(g.Share(g.Good))+" %")
	s.table(t)
	s.row("Request goodput", optional(g.Rate, 2), "req/s", "")
}

func (s *servingPage) failures() {
	r := s.Result
	if r.Failed == 0 {
		return
	}
	t := table{columns: []string{"Failed", "Requests", "For example"}, words: true}
	for _, class := range slices.Sorted(maps.Keys(r.Errors)) {
		t.add(oneLine(string(class)), grouped(r.Errors[class]), oneLine(r.Examples[class]))
	}
	s.table(t)
}

func (s *servingPage) kinds() {
	if s.Result.Detail == nil {
		return
	}
	for _, g := range s.Result.Detail.Groups {
		s.begin("By " + g.By)
		t := table{columns: []string{"", "Completed", "Failed", "Median TTFT (ms)", "P99 TTFT (ms)", "Median TPOT (ms)", "P99 TPOT (ms)", "Median E2EL (ms)", "P99 E2EL (ms)"}}
		for _, k := range g.Kinds {
			cells := []string{k.Name, grouped(k.Completed), grouped(k.Failed)}
			for _, d := range []stats.Sample{k.TTFT, k.TPOT, k.E2EL} {
				for _, p := range []float64{0.5, 0.99} {
					cell := absent
					if d.Count > 0 {
						cell = decimals(d.Quantile(p), 2)
					}
					cells = append(cells, cell)
				}
			}
			t.add(cells...)
		}
		s.table(t)
	}
}

func (s *servingPage) cache() {
	r := s.Result
	p := &r.Cache.Prediction
	if p.Requests == 0 {
		return
	}
	s.begin("Prefix cache, predicted and measured")
	s.row("Predicted cached tokens", grouped(p.Predicted), "tokens", "of a cache that begins empty and never evicts, "+blocksOf(p))
	s.row("Measured cached tokens", grouped(p.Measured), "tokens", fmt.Sprintf("as predicted for %s of %s requests", grouped(p.Equal), grouped(p.Requests)))
	s.row("Shared tokens", grouped(p.Shared), "tokens", "that an earlier prompt had, too, also those that fill no block")
	if len(p.Causes) > 0 {
		t := table{columns: []string{"Difference", "Requests", "Tokens", "What it is"}, words: true}
		for _, cause := range run.Causes {
			if d, some := p.Causes[cause]; some {
				t.add(string(cause), grouped(d.Requests), grouped(d.Tokens), causeWords[cause])
			}
		}
		s.table(t)
	}
	if f, some := predictionFigure(p); some {
		s.figure(f)
	}
}

func (s *servingPage) server() {
	var b servingBlock
	b.server(&s.Result.Observed.Server)
	if b.Len() == 0 {
		return
	}
	s.begin("Server's own figures")
	t := table{columns: []string{"Figure", "Value", ""}, words: true}
	for line := range strings.Lines(b.String()) {
		if words := strings.SplitN(strings.TrimSpace(line), "  ", 2); len(words) == 2 {
			value, note, _ := strings.Cut(strings.TrimSpace(words[1]), "  ")
			t.add(words[0], value, note)
		}
	}
	s.table(t)
}

// configuration is what the run was made with, and the digests that tell whether
// another was the same.
func (s *servingPage) configuration() {
	run := s.Run
	s.begin("Configuration")
	t := table{columns: []string{"Setting", "Value"}, words: true}
	add := func(name, value string) {
		if value = oneLine(value); value != "" {
			t.add(name, value)
		}
	}
	whole := func(name string, n int) {
		if n != 0 {
			add(name, strconv.Itoa(n))
		}
	}
	add("Command", strings.Join(run.Command, " "))
	add("Version", run.Version)
	add("Started", run.Started.UTC().Format(time.RFC3339))
	if !run.Ended.IsZero() {
		add("Ended", run.Ended.UTC().Format(time.RFC3339))
	}
	add("Trace", run.Trace.Name)
	if run.Trace.Rate != 0 {
		add("Request rate configured", plainNumber(run.Trace.Rate)+" req/s")
	}
	if w := run.Window; w != (runfile.Window{}) {
		add("Warm-up and cool-down", plainNumber(w.WarmupSeconds)+" s, "+plainNumber(w.CooldownSeconds)+" s")
	}
	whole("Rows", run.Rows)
	whole("Block size", run.Trace.BlockSize)
	if run.Trace.Speedup != 0 {
		add("Speedup", plainNumber(run.Trace.Speedup))
	}
	add("URL", run.Target.URL)
	add("Model", run.Target.Model)
	add("Endpoint", run.Target.Endpoint)
	add("Prompts", run.Target.Prompt)
	add("Tokenizer", run.Target.Tokenizer.Name)
	add("Dataset", run.Target.Dataset.Name)
	add("Body", run.Target.Body)
	whole("Maximum request concurrency", run.Limits.MaxConcurrency)
	whole("Retries", run.Limits.Retries)
	add("Seed", strconv.FormatUint(run.Seed, 10))
	add("Salt", run.Salt)
	if h := run.Host; h.OS != "" {
		add("Client", fmt.Sprintf("%s/%s, %d processors, %s", h.OS, h.Arch, h.CPUs, h.Go))
	}
	add("SHA-256 of the trace", run.Trace.SHA256)
	add("SHA-256 of the schedule", run.Schedule)
	add("SHA-256 of the prompts", run.Prompts)
	add("SHA-256 of the tokenizer", run.Target.Tokenizer.SHA256)
	add("SHA-256 of the dataset", run.Target.Dataset.SHA256)
	s.table(t)
}
