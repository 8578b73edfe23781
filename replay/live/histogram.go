package live

import (
	"fmt"
	"time"

	"moontide/trace/stats"
)

// bounds are those of the buckets of a histogram: four per power of two, from 64 us to
// 268 s, and one bucket for what is longer.
var bounds = func() (bounds []time.Duration) {
	const first, octaves, perOctave = 64 * time.Microsecond, 22, 4
	for octave := range octaves {
		for part := range time.Duration(perOctave) {
			bounds = append(bounds, first<<octave+part*(first<<octave/perOctave))
		}
	}
	return append(bounds, first<<octaves)
}()

// appendHistogram appends a histogram in Prometheus' text format.
func appendHistogram(b []byte, name, labels, help string, d *stats.Durations) []byte {
	b = AppendMetric(b, name, "histogram", help)
	for i, n := range d.Cumulative(bounds) {
		b = fmt.Appendf(b, "%s_bucket{%s,le=\"%s\"} %d\n", name, labels, stats.Plain(bounds[i].Seconds()), n)
	}
	return fmt.Appendf(b, "%s_bucket{%s,le=\"+Inf\"} %d\n%[1]s_sum{%[2]s} %[4]s\n%[1]s_count{%[2]s} %[3]d\n", name, labels, d.Count(), stats.Plain(d.Sum().Seconds()))
}
