package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
)

// CalibrationLine returns the result at one load as one line.
func CalibrationLine(p experiment.LoadResult) string {
	line := fmt.Sprintf("%v: errors at p99: TTFT %s ms, ITL %s ms; client lag at p99: %s ms",
		p.Load, doc.Fixed(p.TTFT.P99MS, 3), doc.Fixed(p.ITL.P99MS, 3), doc.Fixed(p.ClientLag.P99MS, 3))
	if p.TooMuch != "" {
		line += "; too much: " + p.TooMuch
	}
	return line
}

// Calibration reports the loads that a client measures correctly on this machine.
func Calibration(c *experiment.Calibration) *doc.Document {
	m := c.Machine
	d := doc.New("CLIENT CALIBRATION", fmt.Sprintf("%s: %d CPU cores, %s, %s/%s, %s", c.Taken.Format("2006-01-02"), m.CPUs, cmp.Or(m.CPU, "unknown"), m.OS, m.Arch, m.Go))
	s := d.Section("Within the limit")
	s.Row("Concurrent streams", doc.Int(c.Range.Streams), "", "p99 error below "+doc.Fixed(c.LimitMS, 0)+" ms")
	s.Row("Events", doc.Fixed(c.Range.EventsPerSecond, 0), "/s", "of all streams")
	s.Row("Requests", doc.Fixed(c.Range.RequestsPerSecond, 0), "/s", "same limit, client lag")
	stamps := "Arrivals are timestamped when the client reads them."
	if c.Stamps == replay.KernelStamps {
		stamps = "Arrivals are timestamped by the kernel."
	}
	s = d.Section("Errors, in milliseconds")
	s.Text("TTFT: first token time of the client minus that of the endpoint. ITL: gap between two tokens as",
		"the client saw it minus the gap as the endpoint wrote it. Lag: how late the client sent requests.", stamps)
	t := doc.Table{Columns: []string{"load", "TTFT p50", "p99", "max", "ITL p50", "p99", "max", "lag p50", "p99", "lost"}, Left: 1}
	for _, p := range c.Points {
		cells := []string{loadName(p.Load)}
		for _, x := range []float64{p.TTFT.MedianMS, p.TTFT.P99MS, p.TTFT.MaxMS, p.ITL.MedianMS, p.ITL.P99MS, p.ITL.MaxMS, p.ClientLag.MedianMS, p.ClientLag.P99MS} {
			cells = append(cells, doc.Fixed(x, 3))
		}
		t.Add(append(cells, strconv.Itoa(p.Lost))...)
		if p.TooMuch != "" {
			d.Note("Too much", fmt.Sprintf("%v: %s.", p.Load, p.TooMuch))
		}
	}
	s.Table(t)
	return d
}

func loadName(l experiment.Load) string {
	switch {
	case l.Kind == experiment.Sends:
		return fmt.Sprintf("%s req/s, ISL %s", doc.Fixed(l.RequestRate, 0), doc.Int(l.ISL))
	case l.LockStep:
		return fmt.Sprintf("%s x %g/s, lock-step", doc.Int(l.Requests), l.TokenRate)
	}
	return fmt.Sprintf("%s x %g/s, phased", doc.Int(l.Requests), l.TokenRate)
}

// beyondCalibrated describes how the peak load of a run exceeds the calibrated range, "" if
// it does not.
func beyondCalibrated(c *runfile.Calibrated, streams int, events, requests float64) string {
	var over []string
	for _, u := range []struct {
		what      string
		had, most float64
	}{
		{"streams", float64(streams), float64(c.Streams)},
		{"events/s", events, c.EventsPerSecond},
		{"requests/s", requests, c.RequestsPerSecond},
	} {
		if u.had > u.most {
			over = append(over, fmt.Sprintf("%s %s of %s", doc.Fixed(u.had, 0), u.what, doc.Fixed(u.most, 0)))
		}
	}
	if over == nil {
		return ""
	}
	return fmt.Sprintf("the load exceeds what was calibrated on this machine on %s: peak of %s", c.Taken.Format("2006-01-02"), strings.Join(over, ", "))
}
