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

func (s *Service) describe(d *document, timed bool) {
	if s == nil {
		return
	}
	d.section("Concurrency at a given speed")
	if !timed {
		d.paragraph("No row has a timestamp, so it is not known how many requests would be in flight.")
		return
	}
	d.paragraph(s.speed())
	d.row("Mean in flight, Little's law", optional(s.Little, 1), "", "rate * time in service")
	d.row("Mean in flight, exact", optional(s.Mean, 1), "", "first to last request")
	d.row("Peak in flight, exact", grouped(s.Peak), "", "")
}

// speed says how fast the server is.
func (s *Service) speed() string {
	return fmt.Sprintf("A request takes a TTFT of %s ms and a TPOT of %s ms, whatever the load.", decimals(s.TTFT, 1), decimals(s.TPOT, 1))
}
