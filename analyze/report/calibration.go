package report

import (
	"fmt"
	"io"
	"strconv"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/runfile"
)

// CalibrationText writes what a client was found to drive. The only errors are
// those of w.
func CalibrationText(w io.Writer, c *bench.Calibration) error {
	d := calibrationDocument(c)
	return write(w, d.text())
}

// CalibrationJSON writes the same as one indented JSON object. The errors are
// those of w.
func CalibrationJSON(w io.Writer, c *bench.Calibration) error { return writeJSON(w, c) }

// CalibrationLine is a load in a line, for those who wait for the rest.
func CalibrationLine(p bench.Point) string {
	line := fmt.Sprintf("%v: errors at p99: TTFT %s ms, ITL %s ms; client lag at p99: %s ms",
		p.Load, milliseconds(p.TTFT.P99MS), milliseconds(p.ITL.P99MS), milliseconds(p.ClientLag.P99MS))
	if p.TooMuch != "" {
		line += "; too much: " + p.TooMuch
	}
	return line
}

func calibrationDocument(c *bench.Calibration) *document {
	d := &document{title: "CLIENT CALIBRATION", subject: machineLine(c)}
	d.section("Within the limit")
	limit := "error at p99 below " + decimals(c.LimitMS, 0) + " ms"
	d.row("Streams at once", grouped(c.Range.Streams), "", limit)
	d.row("Events", decimals(c.Range.EventsPerSecond, 0), "/s", "of all streams")
	d.row("Requests", decimals(c.Range.RequestsPerSecond, 0), "/s", "client lag alike")
	d.section("Errors, in milliseconds")
	d.paragraph("Of the TTFT: the client's instant of a first token less the endpoint's. Of the ITL:",
		"the gap between two tokens as the client saw it, less as the endpoint wrote it.",
		"Client lag is how late requests were sent.", whoseStamps(c.Stamps))
	d.pause()
	d.table(calibrationErrors(c.Points))
	d.section("Work")
	d.paragraph("Of client and endpoint, each a process of its own, and of what else ran on the machine.")
	d.pause()
	d.table(calibrationWork(c.Points))
	for i, p := range c.Points {
		if p.TooMuch == "" {
			continue
		}
		if i > 0 {
			d.pause()
		}
		d.paragraph(fmt.Sprintf("Too much: %v: %s.", p.Load, p.TooMuch))
	}
	return d
}

func machineLine(c *bench.Calibration) string {
	cpu := c.Machine.CPU
	if cpu == "" {
		cpu = "unknown"
	}
	return fmt.Sprintf("%s: %d processors %s, %s/%s, %s", c.Taken.Format("2006-01-02"), c.Machine.CPUs, cpu, c.Machine.OS, c.Machine.Arch, c.Machine.Go)
}

func whoseStamps(s replay.Stamps) string {
	if s == replay.KernelStamps {
		return "The kernel stamped what arrived."
	}
	return "The client stamped what arrived as it read it."
}

func calibrationErrors(points []bench.Point) table {
	t := table{columns: []string{"load", "TTFT p50", "p99", "max", "ITL p50", "p99", "max", "lag p50", "p99", "lost"}}
	for _, p := range points {
		cells := []string{loadName(p.Load)}
		for _, x := range []float64{p.TTFT.MedianMS, p.TTFT.P99MS, p.TTFT.MaxMS, p.ITL.MedianMS, p.ITL.P99MS, p.ITL.MaxMS, p.ClientLag.MedianMS, p.ClientLag.P99MS} {
			cells = append(cells, milliseconds(x))
		}
		t.add(append(cells, strconv.Itoa(p.Lost))...)
	}
	return t
}

func calibrationWork(points []bench.Point) table {
	t := table{columns: []string{"load", "events/s", "us/event", "cores", "MB", "endpoint us/event", "cores", "MB", "others cores"}}
	for _, p := range points {
		t.add(loadName(p.Load), decimals(p.EventRate, 0),
			decimals(p.Client.PerEvent, 1), decimals(p.Client.Cores, 2), decimals(p.Client.MemoryMB, 0),
			decimals(p.Server.PerEvent, 1), decimals(p.Server.Cores, 2), decimals(p.Server.MemoryMB, 0),
			decimals(p.Others, 2))
	}
	return t
}

// loadName is a load in a table.
func loadName(l bench.Load) string {
	switch {
	case l.Kind == bench.Sends:
		return fmt.Sprintf("%s req/s, ISL %s", decimals(l.RequestRate, 0), grouped(l.ISL))
	case l.LockStep:
		return fmt.Sprintf("%s x %g/s, lock-step", grouped(l.Requests), l.TokenRate)
	}
	return fmt.Sprintf("%s x %g/s, phased", grouped(l.Requests), l.TokenRate)
}

func milliseconds(x float64) string { return decimals(x, 3) }

// calibrated says how far within the range of its client a run was, or how far
// outside.
func (b *servingBlock) calibrated(run runfile.Run, r *run.Result) {
	if c := run.Calibrated; c != nil && !run.Target.Virtual {
		fmt.Fprintf(b, "Calibrated: %s.\n", placeIn(c, r.PeakConcurrency, r.PeakEventRate, r.PeakSendRate))
	}
}

// placeIn places the most that a run had in the range of its client.
func placeIn(c *runfile.Calibrated, streams int, events, requests float64) string {
	used := []struct {
		what      string
		had, most float64
	}{
		{"streams", float64(streams), float64(c.Streams)},
		{"events/s", events, c.EventsPerSecond},
		{"requests/s", requests, c.RequestsPerSecond},
	}
	where, of := "inside", ""
	for i, u := range used {
		if i > 0 {
			of += ", "
		}
		of += fmt.Sprintf("%s %s of %s", decimals(u.had, 0), u.what, decimals(u.most, 0))
		if u.most > 0 {
			of += fmt.Sprintf(" (%s %%)", decimals(100*u.had/u.most, 0))
		}
		if u.had > u.most {
			where = "OUTSIDE"
		}
	}
	return fmt.Sprintf("%s what the client was seen to drive on this machine on %s: at most %s", where, c.Taken.Format("2006-01-02"), of)
}
