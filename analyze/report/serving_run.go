package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/run"
	"moontide/replay/runfile"
	"moontide/trace/stats"
)

// ServingRun is a run and what it measured, which a report shows as View says.
// Reports of several are of [ServingRuns].
type ServingRun struct {
	Name   string // tells runs apart, mostly the folder
	Run    runfile.Run
	Result *run.Result
	View   View
}

// ServingRuns are runs that are shown together.
type ServingRuns []ServingRun

// View says what of a run's latencies is shown. The zero View is what vLLM's
// benchmark shows: TTFT, TPOT, ITL and E2EL, and of each mean, median and p99.
type View struct {
	Metrics     []run.Metric
	Percentiles []float64 // 0 to 100, shown after mean and median
}

// ParsePercentiles reads percentiles with commas between them, from 0 to 100.
func ParsePercentiles(text string) ([]float64, error) {
	var all []float64
	for word := range strings.SplitSeq(text, ",") {
		p, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return nil, fmt.Errorf("%q is no percentile from 0 to 100", word)
		}
		if slices.Contains(all, p) {
			return nil, fmt.Errorf("%s is named twice", percentileName(p))
		}
		all = append(all, p)
	}
	return all, nil
}

func (v View) metrics() []run.Metric {
	if v.Metrics == nil {
		return []run.Metric{run.TTFT, run.TPOT, run.ITL, run.E2EL}
	}
	return v.Metrics
}

func (v View) percentiles() []float64 {
	if v.Percentiles == nil {
		return []float64{99}
	}
	return v.Percentiles
}

// statistic is a number that says something of a distribution.
type statistic struct {
	name string // Mean, Median, P99
	of   func(d stats.Sample) float64
}

// statistics are those that a view shows of each metric.
func (v View) statistics() []statistic {
	all := []statistic{
		{"Mean", func(d stats.Sample) float64 { return d.Mean }},
		{"Median", func(d stats.Sample) float64 { return d.Quantile(0.5) }},
	}
	for _, p := range v.percentiles() {
		all = append(all, statistic{"P" + percentileName(p), func(d stats.Sample) float64 { return d.Quantile(p / 100) }})
	}
	return all
}

func percentileName(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) }

// metricWords are what a metric is called at length, and in short.
var metricWords = map[run.Metric]struct{ title, name string }{
	run.TTFT:             {"Time to First Token", "TTFT"},
	run.TTST:             {"Time to Second Token", "TTST"},
	run.TPOT:             {"Time per Output Token (excl. 1st token)", "TPOT"},
	run.ITL:              {"Inter-token Latency", "ITL"},
	run.E2EL:             {"End-to-end Latency", "E2EL"},
	run.TTFTFromSchedule: {"Time to First Token from Schedule", "TTFT from schedule"},
	run.E2ELFromSchedule: {"End-to-end Latency from Schedule", "E2EL from schedule"},
	run.ScheduleLag:      {"Schedule Lag", "schedule lag"},
	run.ClientLag:        {"Client Lag", "client lag"},
	run.Opening:          {"Wait for a Connection", "opening"},
	run.Held:             {"Held Back", "held"},
}
