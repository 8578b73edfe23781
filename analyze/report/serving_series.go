package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"moontide/analyze/run"
	"moontide/trace/stats"
)

// SeriesCSV writes a run over time, a line for each of its stretches. Rates are a
// second, latencies in milliseconds; what there is none of is empty. The result
// must have been computed with Options.Detail. The only errors are those of w.
func SeriesCSV(w io.Writer, s run.Series) error {
	out := csv.NewWriter(w)
	out.Write([]string{
		"from_s", "to_s", "due", "sent", "completed", "failed", "output_throughput", "mean_in_flight", "max_in_flight",
		"median_ttft_ms", "p99_ttft_ms", "max_ttft_ms", "p99_schedule_lag_ms", "p99_client_lag_ms",
	})
	step := s.Step.Seconds()
	for i, at := range s.Stretches {
		from := s.From.Seconds() + float64(i)*step
		out.Write([]string{
			shortest(from), shortest(from + step),
			strconv.Itoa(at.Due), strconv.Itoa(at.Sent), strconv.Itoa(at.Completed), strconv.Itoa(at.Failed),
			shortest(at.Output / step), shortest(at.InFlight), strconv.Itoa(at.MostInFlight),
			quantileCell(at.TTFT, 0.5), quantileCell(at.TTFT, 0.99), quantileCell(at.TTFT, 1),
			quantileCell(at.ScheduleLag, 0.99), quantileCell(at.ClientLag, 0.99),
		})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing series: %w", err)
	}
	return nil
}

// shortest has up to six decimals, and as few as it takes.
func shortest(x float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', 6, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

func quantileCell(d stats.Sample, p float64) string {
	if d.Count == 0 {
		return ""
	}
	return shortest(d.Quantile(p))
}
