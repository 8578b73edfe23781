package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/run"
	"moontide/replay/runfile"
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
	Metrics     []run.Latency
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

func (v View) metrics() []run.Latency {
	if v.Metrics == nil {
		return run.VLLMLatencies
	}
	return v.Metrics
}

func (v View) percentiles() []float64 {
	if v.Percentiles == nil {
		return []float64{99}
	}
	return v.Percentiles
}

// statistics are those that a view shows of each metric.
func (v View) statistics() []run.Statistic {
	all := []run.Statistic{run.Mean, run.Median}
	for _, p := range v.percentiles() {
		all = append(all, run.Percentile(p))
	}
	return all
}

func percentileName(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) }
