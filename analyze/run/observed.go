package run

import (
	"iter"
	"time"

	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// Observed is what the samples of a run tell. The zero Observed is that of a
// run without samples.
type Observed struct {
	Client ObservedClient
	Server ObservedServer
}

// ObservedClient is what the client did, and what was done to it. Distributions
// are over the samples, which mostly are seconds.
type ObservedClient struct {
	Samples      int
	CPU          float64      // its processor time over the time that passed: 1 is one processor
	MachineShare stats.Sample // the same over all processors
	MachineBusy  stats.Sample // that of all processes; all 0 where it is not known
	SchedMS      stats.Sample // how long goroutines waited for a processor, at p99 of the sample
	GCPauses     int
	GCPauseMaxMS float64
	RSSBytes     int64 // the most memory
}

// ObservedServer is what the server said of itself.
type ObservedServer struct {
	Engine   string // whose names its figures bear; "" is none
	Engines  int    // that told of their KV cache
	Scrapes  int    // answers
	Failures int    // times that it did not answer, or made no sense
	Failure  string // the first

	// Over the answers while the run lasted.
	KVUse            stats.Sample // share of the KV cache in use, mean over the engines
	KVUseMax         stats.Sample // of the engine with most
	Running, Waiting stats.Sample // requests
	HitRate          stats.Sample // of servers that do not count tokens

	// What its counters grew by from the first answer to the last; unknown where
	// they fell in between, as those of a server do that began anew.
	QueriedTokens, HitTokens, Preemptions trace.Opt[int]

	BlockSize      int // tokens, 0 where it does not say
	CapacityTokens int // of the KV caches of all engines, 0 where it does not say
}

// Observe reads the samples of a run: of the client's, those inside a window;
// the server's all, for it is asked less often than a window is exact. An error
// of samples is returned as it is.
func Observe(samples iter.Seq2[runfile.Sample, error], window Span) (Observed, error) {
	var c clientObserver
	var s serverObserver
	for sample, err := range samples {
		if err != nil {
			return Observed{}, err
		}
		s.add(&sample)
		if sample.SpanMS > 0 && window.has(time.Duration(sample.AtMS*float64(time.Millisecond))) {
			c.add(&sample)
		}
	}
	return Observed{c.finish(), s.finish()}, nil
}

type clientObserver struct {
	ObservedClient
	cpu, span     float64 // ms
	machine, busy []float64
	delayed       []float64
}

func (c *clientObserver) add(s *runfile.Sample) {
	c.Samples++
	c.cpu += s.CPU * s.SpanMS
	c.span += s.SpanMS
	c.machine = append(c.machine, s.MachineShare)
	c.busy = append(c.busy, s.MachineBusy)
	c.delayed = append(c.delayed, s.SchedP99MS)
	c.GCPauses += s.GCPauses
	c.GCPauseMaxMS = max(c.GCPauseMaxMS, s.GCPauseMaxMS)
	c.RSSBytes = max(c.RSSBytes, s.RSSBytes)
}

func (c *clientObserver) finish() ObservedClient {
	if c.span > 0 {
		c.CPU = c.cpu / c.span
	}
	c.MachineShare, c.MachineBusy, c.SchedMS = stats.Of(c.machine), stats.Of(c.busy), stats.Of(c.delayed)
	return c.ObservedClient
}

type serverObserver struct {
	ObservedServer
	kvUse, kvUseMax, running, waiting, hitRate []float64
	queried, hit, preemptions                  counter
}

func (o *serverObserver) add(s *runfile.Sample) {
	if s.ServerError != "" {
		o.Failures++
		if o.Failure == "" {
			o.Failure = s.ServerError
		}
	}
	f := s.Server
	if f == nil {
		return
	}
	o.Scrapes++
	o.Engine, o.Engines = f.Engine, max(o.Engines, f.Engines)
	for _, gauge := range []struct {
		to *[]float64
		of *float64
	}{{&o.kvUse, f.KVUse}, {&o.kvUseMax, f.KVUseMax}, {&o.running, f.Running}, {&o.waiting, f.Waiting}, {&o.hitRate, f.HitRate}} {
		if gauge.of != nil {
			*gauge.to = append(*gauge.to, *gauge.of)
		}
	}
	o.queried.add(f.QueriedTokens)
	o.hit.add(f.HitTokens)
	o.preemptions.add(f.Preemptions)
	o.BlockSize = whole(f.BlockSize, o.BlockSize)
	o.CapacityTokens = whole(f.CapacityTokens, o.CapacityTokens)
}

func (o *serverObserver) finish() ObservedServer {
	o.KVUse, o.KVUseMax, o.HitRate = during(o.kvUse), during(o.kvUseMax), during(o.hitRate)
	o.Running, o.Waiting = during(o.running), during(o.waiting)
	o.QueriedTokens, o.HitTokens, o.Preemptions = o.queried.growth(), o.hit.growth(), o.preemptions.growth()
	return o.ObservedServer
}

// during is the distribution of a gauge while the run lasted: the first answer is
// from before it, and the last from after it.
func during(answers []float64) stats.Sample {
	if len(answers) > 2 {
		answers = answers[1 : len(answers)-1]
	}
	return stats.Of(answers)
}

// counter is a value that only grows.
type counter struct {
	values      int
	first, last float64
	fell        bool
}

func (c *counter) add(value *float64) {
	if value == nil {
		return
	}
	if c.values++; c.values == 1 {
		c.first, c.last = *value, *value
	}
	c.fell = c.fell || *value < c.last
	c.last = *value
}

func (c *counter) growth() trace.Opt[int] {
	if c.values < 2 || c.fell || !(c.last-c.first < 1e15) {
		return trace.Opt[int]{}
	}
	return trace.Some(int(c.last - c.first))
}

// whole is a figure that counts something, or what was known before.
func whole(figure *float64, known int) int {
	if figure == nil || !(*figure >= 1 && *figure < 1e15) {
		return known
	}
	return int(*figure)
}
