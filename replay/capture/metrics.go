package capture

import (
	"fmt"
	"maps"
	"slices"
)

// AppendText appends the counts in Prometheus' text format. It may be called from any
// goroutine.
func (p *Proxy) AppendText(b []byte) []byte {
	c := p.Counts()
	one := func(name, kind, help string, value int64) {
		b = fmt.Appendf(b, "# HELP moontide_capture_%[1]s %[3]s\n# TYPE moontide_capture_%[1]s %[2]s\nmoontide_capture_%[1]s %[4]d\n", name, kind, help, value)
	}
	by := func(name, label, help string, values map[string]int64) {
		b = fmt.Appendf(b, "# HELP moontide_capture_%[1]s %[2]s\n# TYPE moontide_capture_%[1]s counter\n", name, help)
		for _, value := range slices.Sorted(maps.Keys(values)) {
			b = fmt.Appendf(b, "moontide_capture_%s{%s=%q} %d\n", name, label, value, values[value])
		}
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
