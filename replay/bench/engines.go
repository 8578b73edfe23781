package bench

import (
	"fmt"
	"strings"

	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/enginefile"
	"moontide/trace"
	"moontide/trace/stats"
)

// DescribeEngines describes simulated engines in words; file may be nil.
func DescribeEngines(d engine.Deployment, file *enginefile.File) string {
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
type lengths struct{ input, output stats.SampleBuilder }

func (l *lengths) add(r trace.Request) {
	l.input.Add(int64(r.InputLength))
	l.output.Add(int64(r.OutputLength))
}

// outside warns about a load outside the fitted range of the engine file: the p99 of
// the lengths, and the requests in flight, 0 if unknown.
func (c *Config) outside(in *input, inFlight int) []string {
	if c.EngineFile == nil || in.lengths == nil {
		return nil
	}
	of := func(b *stats.SampleBuilder) enginefile.Interval {
		s := b.Sample(1)
		return enginefile.Interval{Low: int(s.Quantile(0.01)), High: int(s.Quantile(0.99))}
	}
	load := enginefile.Range{ISL: of(&in.lengths.input), OSL: of(&in.lengths.output)}
	d := c.engines()
	if n := inFlight; n > 0 {
		load.Concurrency = enginefile.Interval{Low: n, High: n}
		perEngine := (n + max(d.Engines, d.Decode, 1) - 1) / max(d.Engines, d.Decode, 1)
		load.Running = enginefile.Interval{Low: perEngine, High: perEngine}
	}
	warnings := c.EngineFile.Outside(load)
	if warnings == nil {
		return nil
	}
	text := fmt.Sprintf("warning: outside the range that %s was fitted to: %s", c.EngineFile.Name, strings.Join(warnings, "; "))
	c.Observer.message("%s", text)
	return []string{text}
}
