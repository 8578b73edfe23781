package report

import (
	"fmt"
	"slices"
	"strings"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/trace/stats"
)

// headlines returns the result in a few numbers: goodput if there are objectives,
// latencies at p99, and throughput.
func (r Run) headlines() (all []doc.KeyValue) {
	result := r.Result
	if g := result.Goodput; g != nil {
		all = append(all, doc.KeyValue{Key: "Goodput", Value: doc.FixedOr(g.Rate, 2), Unit: "req/s", Note: doc.PercentOr(g.Share(g.Good)) + " % met all objectives"})
	}
	for _, l := range (Runs{r}).withTTFVT(measure.VLLMLatencies) {
		d := result.Latency(l)
		if d.Count == 0 {
			continue
		}
		note := "median " + doc.Duration(d.Quantile(0.5))
		if from := result.Latency(fromSchedule[l]); differs(d, from) {
			note += ", p99 from schedule " + doc.Duration(from.Quantile(0.99))
		}
		value, unit, _ := strings.Cut(doc.Duration(d.Quantile(0.99)), " ")
		all = append(all, doc.KeyValue{Key: "P99 " + l.Label(), Value: value, Unit: unit, Note: note})
	}
	failed := "none failed"
	if result.Failed > 0 {
		failed = doc.Int(result.Failed) + " failed"
	}
	if n := result.Abandoned.Requests; n > 0 {
		failed += ", " + doc.Int(n) + " abandoned"
	}
	return append(all,
		doc.KeyValue{Key: "Request throughput", Value: doc.FixedOr(result.RequestRate, 2), Unit: "req/s", Note: fmt.Sprintf("at most %s in flight", doc.Int(result.PeakConcurrency))},
		doc.KeyValue{Key: "Output throughput", Value: doc.FixedOr(result.OutputRate, 0), Unit: "tok/s", Note: fmt.Sprintf("%s in the best second", doc.Fixed(result.PeakOutputRate, 0))},
		doc.KeyValue{Key: "Completed", Value: doc.Int(result.Completed), Unit: doc.Plural(result.Completed, "request"), Note: failed})
}

// fromSchedule names the latencies that include the client's wait.
var fromSchedule = map[measure.Latency]measure.Latency{measure.TTFT: measure.TTFTFromSchedule, measure.E2EL: measure.E2ELFromSchedule}

// differs reports whether a latency from the schedule differs by 1 % at the median or p99.
func differs(d, from stats.Sample) bool {
	for _, p := range []float64{0.5, 0.99} {
		if from.Count > 0 && from.Quantile(p) > 1.01*d.Quantile(p) {
			return true
		}
	}
	return false
}

// informative omits latencies from the schedule that equal those from sending, and
// latencies that are always 0, as in virtual time.
func (r Run) informative(all []measure.Latency) []measure.Latency {
	return slices.DeleteFunc(slices.Clone(all), func(l measure.Latency) bool {
		for sent, due := range fromSchedule {
			if l == due {
				return !differs(r.Result.Latency(sent), r.Result.Latency(due))
			}
		}
		d := r.Result.Latency(l)
		return d.Count > 0 && d.Min == 0 && d.Max == 0
	})
}

// mostDrawn is the maximum number of runs of a page with all figures of each. A page of more
// runs has their common distributions.
const mostDrawn = 3
