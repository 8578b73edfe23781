package report

import (
	"fmt"

	"moontide/analyze"
)

// Service is the concurrency that a trace asks of a server of a given speed.
type Service struct {
	TTFT, TPOT float64 // ms
	analyze.Concurrency
}

func (s *Service) describe(d *document) {
	if s == nil {
		return
	}
	d.section("Concurrency at a given speed")
	d.paragraph(fmt.Sprintf("A request takes a TTFT of %s ms and a TPOT of %s ms, whatever the load.", decimals(s.TTFT, 1), decimals(s.TPOT, 1)))
	d.row("Mean in flight, Little's law", optional(s.Little, 1), "", "rate * time in service")
	d.row("Mean in flight, exact", optional(s.Mean, 1), "", "first to last request")
	d.row("Peak in flight, exact", grouped(s.Peak), "", "")
}
