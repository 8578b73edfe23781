package capture

import (
	"fmt"
	"maps"
	"slices"

	"moontide/replay/live"
)

// AppendText appends the counts in Prometheus' text format. It may be called from any
// goroutine.
func (p *Proxy) AppendText(b []byte) []byte {
	c := p.Counts()
	one := func(name, kind, help string, value int64) {
		b = live.AppendMetric(b, "moontide_capture_"+name, kind, help, "", value)
	}
	by := func(name, label, help string, values map[string]int64) {
		var samples []any
		for _, value := range slices.Sorted(maps.Keys(values)) {
			samples = append(samples, fmt.Sprintf("%s=%q", label, value), values[value])
		}
		b = live.AppendMetric(b, "moontide_capture_"+name, "counter", help, samples...)
	}
	ended := map[string]int64{}
	for class, n := range c.Ended {
		ended[outcome(class)] = n
	}
	one("requests_total", "counter", "Requests for an answer.", c.Requests)
	one("requests_in_flight", "gauge", "Requests that have not ended.", c.InFlight)
	one("other_requests_total", "counter", "Requests that are passed on and not recorded.", c.Other)
	by("requests_ended_total", "outcome", "Requests that have ended, by outcome.", ended)
	one("rows_total", "counter", "Rows written.", c.Rows)
	one("sampled_out_total", "counter", "Requests of sessions outside of the sample.", c.SampledOut)
	by("lost_rows_total", "reason", "Rows that are missing in the trace.", c.LostRows)
	by("rows_without_blocks_total", "reason", "Rows without block ids.", c.NoBlocks)
	one("held_bytes", "gauge", "Bytes of bodies and answers in memory.", c.HeldBytes)
	one("faults_total", "counter", "Faults of the capture that did not stop the traffic.", c.Faults)
	return b
}
