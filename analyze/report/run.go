package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/slo"
	"moontide/replay/runfile"
	"moontide/trace/stats"
)

// Run is a run and its results.
type Run struct {
	Name   string // distinguishes runs, usually the folder
	Info   runfile.Run
	Result *measure.Result // with Options.Detail for figures over time
	View   View
	Dir    string // folder, where known
}

// Runs are runs that are reported together.
type Runs []Run

// View selects the latencies of a report, by default those of vLLM's benchmark: mean,
// median and p99 of TTFT, TPOT, ITL and E2EL, and of TTFVT if a response began with
// reasoning. It also holds the gates of each run.
type View struct {
	Latencies   []measure.Latency
	Percentiles []float64 // 0 to 100, shown after mean and median
	Gates       []slo.Gate
}

// ParsePercentiles parses comma-separated percentiles from 0 to 100.
func ParsePercentiles(text string) ([]float64, error) {
	var all []float64
	for word := range strings.SplitSeq(text, ",") {
		p, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return nil, fmt.Errorf("%q is not a percentile from 0 to 100", word)
		}
		if slices.Contains(all, p) {
			return nil, fmt.Errorf("percentile %s is listed twice", stats.Plain(p))
		}
		all = append(all, p)
	}
	return all, nil
}

func (v View) statistics() []measure.Statistic {
	return withPercentiles([]measure.Statistic{measure.Mean, measure.Median}, v.percentiles(99))
}

// percentiles returns those of the view or, if it has none, the given ones.
func (v View) percentiles(otherwise ...float64) []float64 {
	if v.Percentiles == nil {
		return otherwise
	}
	return v.Percentiles
}

func withPercentiles(all []measure.Statistic, percentiles []float64) []measure.Statistic {
	for _, p := range percentiles {
		all = append(all, measure.Percentile(p))
	}
	return all
}

// Document contains the "Serving Benchmark Result" of each run and its details. Its Data
// has one row per run, under the keys of the summary.
func (runs Runs) Document() *doc.Document {
	metrics := runs.metrics()
	d := runs.document(func(r Run, part *doc.Document) {
		part.Headlines = r.headlines()
		r.addTo(part, metrics)
		if len(runs) > mostDrawn {
			part.DropFigures()
		}
	})
	if len(runs) > 1 {
		s := d.DetailSection("Runs")
		s.Figures(runs.overlays()...)
		s = d.DetailSection("Side by side")
		if len(runs) > mostDrawn {
			s.Note("Note", "more figures of each run are in its own report.")
		}
		s.Table(runs.sideBySide())
	}
	return d
}

// document has a part for each run, from add, with the notes and the verdict.
func (runs Runs) document(add func(r Run, part *doc.Document)) *doc.Document {
	d := doc.New("Serving benchmark", runs.subject())
	d.ListingFirst = true
	for _, r := range runs {
		part := &doc.Document{}
		if len(runs) > 1 {
			part.Title = r.name()
		}
		add(r, part)
		r.addNotes(part)
		d.Parts = append(d.Parts, part)
	}
	return d
}

func (runs Runs) subject() string {
	var all []string
	for _, r := range runs {
		s := fmt.Sprintf("%s against %s", orUnnamed(r.Info.Trace.Name), orUnnamed(r.Info.ModelText()))
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, "; ")
}

func orUnnamed(name string) string {
	if strings.TrimSpace(name) == "" {
		return "(unnamed)"
	}
	return name
}

func (r Run) name() string { return orUnnamed(r.Name) }

// metrics returns the metrics of all runs, with the latencies of the first.
func (runs Runs) metrics() []measure.Metric {
	if len(runs) == 0 {
		return nil
	}
	first := runs[0]
	var objectives []measure.Objective
	if g := first.Result.Goodput; g != nil {
		for _, o := range g.Objectives {
			objectives = append(objectives, o.Objective)
		}
	}
	metrics := slices.Concat(measure.BlockMetrics(objectives), runs.extraMetrics(), runs.sessionMetrics())
	shown := runs.latencies()
	for _, l := range measure.ScheduleLatencies {
		if !slices.Contains(shown, l) {
			shown = append(slices.Clone(shown), l)
		}
	}
	for _, l := range shown {
		for _, s := range first.View.statistics() {
			metrics = append(metrics, l.Metric(s))
		}
	}
	return metrics
}

func (runs Runs) sideBySide() doc.Table {
	t := doc.Table{Columns: []string{"Metric"}, Left: 1}
	verdicts, outcomes := []string{"Verdict"}, []string{"Gates"}
	for _, r := range runs {
		t.Columns = append(t.Columns, r.name())
		verdicts = append(verdicts, r.Result.Verdict.Level.String())
		outcome := doc.Absent
		if all := r.Judgements(); all != nil {
			outcome = gateLevel(all)
		}
		outcomes = append(outcomes, outcome)
	}
	t.Add(verdicts...)
	if slices.ContainsFunc(runs, func(r Run) bool { return r.View.Gates != nil }) {
		t.Add(outcomes...)
	}
	for _, m := range runs.metrics() {
		cells := []string{m.Heading()}
		for _, r := range runs {
			cells = append(cells, plainMetric(m, r.Result))
		}
		t.Add(cells...)
	}
	return t
}

func (r Run) addTo(d *doc.Document, metrics []measure.Metric) {
	d.Section("").Blocks = []doc.Block{{Listing: r.listing()}}
	r.addResult(d.DetailSection("Serving benchmark result"))
	r.addFailures(d)
	r.addAbandoned(d)
	r.addGoodput(d)
	r.addModels(d)
	r.addFigures(d)
	r.addSessions(d)
	if detail := r.Result.Detail; detail != nil && len(detail.ByISL) > 1 {
		addTurnTables(d.DetailSection("By ISL"), "ISL", detail.ByISL)
	}
	r.addCache(d)
	r.addParts(d)
	addServer(d, &r.Result.Samples.Server)
	r.addConfiguration(d.DetailSection("Configuration"))
	d.Data.Columns = []string{"run", "verdict"}
	row := []any{r.Name, r.Result.Verdict.Level}
	if all := r.Judgements(); len(all) > 0 {
		d.Data.Columns = append(d.Data.Columns, "gates")
		row = append(row, gateLevel(all))
	}
	for _, m := range metrics {
		d.Data.Columns = append(d.Data.Columns, m.Key)
		row = append(row, m.Value(r.Result))
	}
	d.Data.Add(row...)
}

// addResult adds the content of the block for a page, with figures and a table of
// all latencies.
func (r Run) addResult(s *doc.Section) {
	r.addDistributions(s)
	for _, m := range append(measure.BlockMetrics(nil), Runs{r}.extraMetrics()...) {
		v, decimals := m.Value(r.Result), 2
		if m.Unit == measure.Count {
			decimals = 0
		}
		s.Row(m.Label, doc.FixedOr(v, decimals), string(m.Unit), "")
	}
	statistics := append(withPercentiles([]measure.Statistic{measure.Mean, measure.Std, measure.Min}, r.View.percentiles(50, 90, 99)), measure.Max)
	t := doc.Table{Columns: []string{"ms"}, Left: 1}
	for _, stat := range statistics {
		t.Columns = append(t.Columns, stat.Label())
	}
	for _, l := range r.informative(measure.Latencies) {
		d := r.Result.Latency(l)
		if d.Count == 0 || l == measure.TTFVT && r.Result.Reasoned == 0 {
			continue
		}
		cells := []string{l.Label()}
		for _, stat := range statistics {
			cells = append(cells, doc.Fixed(stat.Of(d), 2))
		}
		t.Add(cells...)
	}
	s.Table(t)
}

func (r Run) addFailures(d *doc.Document) {
	if r.Result.Failed == 0 {
		return
	}
	t := doc.Table{Columns: []string{"class", "requests", "example"}, Left: doc.AllLeft}
	for _, class := range slices.Sorted(maps.Keys(r.Result.Errors)) {
		t.Add(string(class), doc.Int(r.Result.Errors[class]), r.Result.Examples[class])
	}
	d.Section("Failed requests").Table(t)
}

func (r Run) addGoodput(d *doc.Document) {
	g := r.Result.Goodput
	if g == nil {
		return
	}
	t := doc.Table{Columns: []string{"objective", "requests", "of", "share"}, Left: 1}
	add := func(name string, n int) {
		t.Add(name, doc.Int(n), doc.Int(g.Requests), doc.PercentOr(g.Share(n))+" %")
	}
	for _, o := range g.Objectives {
		add(fmt.Sprintf("%s at most %s ms", o.Latency.Label(), stats.Plain(o.LimitMS)), o.Met)
	}
	add("all objectives", g.Good)
	d.Section("Requests that met their objectives").Table(t)
}

// medianAndP99 returns the cells of latencies in milliseconds.
func medianAndP99(latencies ...stats.Sample) (cells []string) {
	for _, l := range latencies {
		cells = append(cells, doc.FixedOr(quantileOf(l, 0.5, 1), 2), doc.FixedOr(quantileOf(l, 0.99, 1), 2))
	}
	return cells
}

// addConfiguration adds the settings that were set and where, what the run found of its
// endpoint and trace, and the digests of the input.
func (r Run) addConfiguration(s *doc.Section) {
	info := r.Info
	t := doc.Table{Columns: []string{"Setting", "Value", "From"}, Left: doc.AllLeft}
	add := func(name, value string) {
		if !slices.Contains([]string{"", "0", "false"}, value) {
			t.Add(name, value, info.Sources[name])
		}
	}
	add("command", strings.Join(info.Command, " "))
	add("started", info.Started.UTC().Format(time.RFC3339))
	if !info.Ended.IsZero() {
		add("ended", info.Ended.UTC().Format(time.RFC3339))
	}
	diff.Settings(info, func(name, value string) {
		if name != "notes" {
			add(name, value)
		}
	})
	add("schedule_sha256", info.Schedule)
	add("prompts_sha256", info.Prompts)
	s.Table(t)
}

// withTTFVT inserts TTFVT after TTFT if a response of any run began with reasoning.
// Without reasoning it would only repeat TTFT.
func (runs Runs) withTTFVT(latencies []measure.Latency) []measure.Latency {
	at := slices.Index(latencies, measure.TTFT) + 1
	if at == 0 || !slices.ContainsFunc(runs, func(r Run) bool { return r.Result.Reasoned > 0 }) {
		return latencies
	}
	return slices.Insert(slices.Clone(latencies), at, measure.TTFVT)
}

// latencies returns the latencies that the first run shows.
func (runs Runs) latencies() []measure.Latency {
	if view := runs[0].View; view.Latencies != nil {
		return view.Latencies
	}
	return runs.withTTFVT(measure.VLLMLatencies)
}

// extraMetrics returns the metrics beside those of the block that a run has.
func (runs Runs) extraMetrics() []measure.Metric {
	var results []*measure.Result
	for _, r := range runs {
		results = append(results, r.Result)
	}
	return measure.ExtraMetrics(results...)
}

// addAbandoned adds the requests that the client closed, and the server's reaction.
func (r Run) addAbandoned(d *doc.Document) {
	a, server := r.Result.Abandoned, &r.Result.Samples.Server
	if a.Requests == 0 {
		return
	}
	s := d.Section("Abandoned requests")
	s.Text("The client closed these requests because they were not complete when the simulated user left. They count as neither completed nor failed, and are excluded from latencies, throughput and cached tokens.")
	share := measure.MustMetric("abandoned_share").Value(r.Result)
	s.Row("Abandoned", doc.Int(a.Requests), "requests", doc.PercentOr(share)+" % of those that ended")
	s.Row("Before the first token", doc.Int(a.Requests-a.Answered), "requests", "")
	s.Row("Received until then", doc.Int(a.Tokens), "tokens", fmt.Sprintf("by %s", doc.Count(a.Answered, "request")))
	if n := server.Aborted; n.Set {
		s.Row("Aborted by the server", doc.Int(n.Value), "requests", "by its own counter, during the run")
	}
	if n := server.RunningAfter; n.Set {
		s.Row("Still running", doc.Int(n.Value), "requests", "by the server's last metrics")
	}
}
