package measure

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// SampleSummary summarizes the samples of a run.
type SampleSummary struct {
	Client ClientLoad
	Server ServerMetrics
}

// ClientLoad is the load on the client, over samples of about a second.
type ClientLoad struct {
	Samples      int
	CPU          float64      // mean number of CPU cores used
	MachineShare stats.Sample // share of all cores used by the client
	MachineBusy  stats.Sample // share of all cores used by all processes; all 0 if unknown
	SchedMS      stats.Sample // p99 of the scheduling delay of goroutines
	GCPauses     int
	GCPauseMaxMS float64
	RSSBytes     int64 // peak
}

// ServerMetrics holds the server's own metrics.
type ServerMetrics struct {
	Engine   string // engine of the metric names; "" if the server was not scraped
	Engines  int    // number of engines that report their KV cache use
	Scrapes  int    // successful ones
	Failures int    // failed scrapes
	Failure  string // the first one

	// Gauges, over the scrapes during the run.
	KVUse            stats.Sample // share of the KV cache in use, mean over the engines
	KVUseMax         stats.Sample // maximum over the engines
	Running, Waiting stats.Sample // requests
	HitRate          stats.Sample // for servers without token counters

	// Restarts counts restarts of the server: a newer start time, or lower counters, than
	// at the scrape before.
	Restarts int
	// Growth of counters from the first scrape to the last; absent if they fell, as
	// after a server restart.
	QueriedTokens, HitTokens, Preemptions trace.Opt[int]
	Aborted                               trace.Opt[int] // requests that the client closed
	// RunningAfter is the number of running requests at the last scrape, after the run.
	RunningAfter trace.Opt[int]

	BlockSize      int // tokens, 0 if unknown
	CapacityTokens int // of the KV caches of all engines, 0 if unknown
}

// SummarizeSamples summarizes the client's samples inside the window, and all of the
// server's, which are few. Errors from samples are returned unchanged.
func SummarizeSamples(samples iter.Seq2[runfile.Sample, error], window Span) (SampleSummary, error) {
	var client []runfile.Sample
	var scrapes []*runfile.ServerFigures
	failures, failure := 0, ""
	for s, err := range samples {
		if err != nil {
			return SampleSummary{}, err
		}
		if s.SpanMS > 0 && window.Has(time.Duration(s.AtMS*float64(time.Millisecond))) {
			client = append(client, s)
		}
		if s.Server != nil {
			scrapes = append(scrapes, s.Server)
		}
		if s.ServerError != "" {
			failures++
			failure = cmp.Or(failure, s.ServerError)
		}
	}
	sum := SampleSummary{clientLoad(client), serverMetrics(scrapes)}
	sum.Server.Failures, sum.Server.Failure = failures, failure
	return sum, nil
}

func clientLoad(samples []runfile.Sample) ClientLoad {
	c := ClientLoad{Samples: len(samples)}
	cpu, span := 0.0, 0.0
	var machine, busy, delays []float64
	for i := range samples {
		s := &samples[i]
		cpu += s.CPU * s.SpanMS
		span += s.SpanMS
		machine, busy, delays = append(machine, s.MachineShare), append(busy, s.MachineBusy), append(delays, s.SchedP99MS)
		c.GCPauses += s.GCPauses
		c.GCPauseMaxMS = max(c.GCPauseMaxMS, s.GCPauseMaxMS)
		c.RSSBytes = max(c.RSSBytes, s.RSSBytes)
	}
	if span > 0 {
		c.CPU = cpu / span
	}
	c.MachineShare, c.MachineBusy, c.SchedMS = stats.Of(machine), stats.Of(busy), stats.Of(delays)
	return c
}

func serverMetrics(scrapes []*runfile.ServerFigures) ServerMetrics {
	known := func(of func(f *runfile.ServerFigures) *float64) (values []float64) {
		for _, f := range scrapes {
			if value := of(f); value != nil {
				values = append(values, *value)
			}
		}
		return values
	}
	m := ServerMetrics{
		Scrapes:        len(scrapes),
		KVUse:          gauge(known(func(f *runfile.ServerFigures) *float64 { return f.KVUse })),
		KVUseMax:       gauge(known(func(f *runfile.ServerFigures) *float64 { return f.KVUseMax })),
		Running:        gauge(known(func(f *runfile.ServerFigures) *float64 { return f.Running })),
		Waiting:        gauge(known(func(f *runfile.ServerFigures) *float64 { return f.Waiting })),
		HitRate:        gauge(known(func(f *runfile.ServerFigures) *float64 { return f.HitRate })),
		QueriedTokens:  growth(known(func(f *runfile.ServerFigures) *float64 { return f.QueriedTokens })),
		HitTokens:      growth(known(func(f *runfile.ServerFigures) *float64 { return f.HitTokens })),
		Preemptions:    growth(known(func(f *runfile.ServerFigures) *float64 { return f.Preemptions })),
		Aborted:        growth(known(func(f *runfile.ServerFigures) *float64 { return f.Aborted })),
		BlockSize:      latestSize(known(func(f *runfile.ServerFigures) *float64 { return f.BlockSize })),
		CapacityTokens: latestSize(known(func(f *runfile.ServerFigures) *float64 { return f.CapacityTokens })),
	}
	for i, f := range scrapes {
		countIf(&m.Restarts, i > 0 && restarted(scrapes[i-1], f))
		m.Engine, m.Engines = f.Engine, max(m.Engines, f.Engines)
		if m.RunningAfter = (trace.Opt[int]{}); f.Running != nil && *f.Running >= 0 && *f.Running < maxCount {
			m.RunningAfter = trace.Some(int(*f.Running))
		}
	}
	return m
}

// restarted reports whether a server restarted between two scrapes.
func restarted(before, after *runfile.ServerFigures) bool {
	const jitter = 1.0 // seconds: some servers compute their start time anew
	less := func(a, b *float64) bool { return a != nil && b != nil && *a < *b }
	if before.StartTime != nil && after.StartTime != nil && *after.StartTime > *before.StartTime+jitter {
		return true
	}
	return less(after.QueriedTokens, before.QueriedTokens) || less(after.HitTokens, before.HitTokens) || less(after.Preemptions, before.Preemptions)
}

// gauge returns the distribution of a gauge without the first and last scrapes, which are
// before and after the run.
func gauge(values []float64) stats.Sample {
	if len(values) > 2 {
		values = values[1 : len(values)-1]
	}
	return stats.Of(values)
}

func growth(values []float64) trace.Opt[int] {
	if len(values) < 2 || !slices.IsSorted(values) || !(values[len(values)-1]-values[0] < maxCount) {
		return trace.Opt[int]{}
	}
	return trace.Some(int(values[len(values)-1] - values[0]))
}

const maxCount = 1e15 // larger values cannot be counts

func latestSize(values []float64) int {
	for _, value := range slices.Backward(values) {
		if value >= 1 && value < maxCount {
			return int(value)
		}
	}
	return 0
}
