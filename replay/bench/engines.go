package bench

import (
	"fmt"
	"strings"

	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
	"moontide/trace"
	"moontide/trace/stats"
)

// DescribeEngines describes simulated engines in words; file may be nil.
func DescribeEngines(d engine.Deployment, file *fit.File) string {
	if file == nil {
		return d.String()
	}
	return fmt.Sprintf("%v, engines of %s", d, file.Name)
}

// recordedEngines returns the simulated engines for run.json.
func (c *Config) recordedEngines() runfile.Engines {
	e := runfile.Engines{Deployment: c.engines().String()}
	if f := c.EngineFile; f != nil {
		e.File = runfile.File{Name: f.Name, SHA256: f.SHA256}
	}
	return e
}

// lengths collects the lengths of the replayed rows.
type lengths struct{ input, output stats.Collector }

func (l *lengths) add(r trace.Request) {
	l.input.Add(float64(r.InputLength))
	l.output.Add(float64(r.OutputLength))
}

// fitted returns the range of the lengths, from the 1st to the 99th percentile.
func (l *lengths) fitted() fit.Range {
	of := func(c *stats.Collector) fit.Interval {
		s := c.Sample()
		return fit.Interval{Low: int(s.Quantile(0.01)), High: int(s.Quantile(0.99))}
	}
	return fit.Range{ISL: of(&l.input), OSL: of(&l.output)}
}

// setRunning sets the sequences that run on an engine if a number of requests is in
// flight.
func setRunning(load *fit.Range, d engine.Deployment, inFlight int) {
	engines := max(d.Engines, d.Decode, 1)
	perEngine := (inFlight + engines - 1) / engines
	if limit := d.Engine.MaxSeqs; limit > 0 {
		perEngine = min(perEngine, limit)
	}
	load.Running = fit.Interval{Low: perEngine, High: perEngine}
}

// outside warns about a load outside the fitted range of the engine file: the p99 of
// the lengths, and the requests in flight, 0 if unknown.
func (c *Config) outside(in *input, inFlight int) []string {
	if c.EngineFile == nil || in.lengths == nil {
		return nil
	}
	load := in.lengths.fitted()
	if n := inFlight; n > 0 {
		load.Concurrency = fit.Interval{Low: n, High: n}
		setRunning(&load, c.engines(), n)
	}
	text := outsideText(c.EngineFile, load)
	if text == "" {
		return nil
	}
	text = "warning: " + text
	c.Observer.message("%s", text)
	return []string{text}
}

// outsideText says how far a load is outside the fitted range of an engine file, "" if it
// is not.
func outsideText(file *fit.File, load fit.Range) string {
	warnings := file.Outside(load)
	if warnings == nil {
		return ""
	}
	return fmt.Sprintf("outside the range that %s was fitted to: %s", file.Name, strings.Join(warnings, "; "))
}
