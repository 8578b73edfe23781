// Package evidence records the activity of client, machine and server during a
// run, so that a report can explain a late client or a slow server.
//
// [Start] starts a [Sampler], which takes a sample every second: CPU use, GC
// pauses and scheduling delays of this process, CPU use of the machine, and the
// server's metrics. [Sampler.Stop] takes the last one. A sample takes about 20
// us and does not stop other goroutines.
//
// A [Scraper] reads the Prometheus metrics of vLLM, SGLang, TensorRT-LLM, Dynamo
// and llama.cpp servers.
package evidence

import (
	"context"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Config configures a [Sampler]. Write and Status are required.
type Config struct {
	// Write stores a sample. It is called from one goroutine at a time, and
	// never again after an error.
	Write func(runfile.Sample) error
	// Status returns the progress of the run. No samples are taken before its
	// start.
	Status func() replay.Status
	// ReadDelay, if not nil, returns how late the client read since the last
	// call.
	ReadDelay func() runfile.ReadDelay
	// Server, if not nil, returns the server's metrics, as [Scraper.Scrape] does.
	Server func(context.Context) (runfile.ServerFigures, error)
	Every  time.Duration // between samples; 0 is a second
}

// Sampler samples a run.
type Sampler struct {
	cfg     Config
	ctx     context.Context
	meter   meter
	first   runfile.Sample      // with the server's metrics from before the run
	started bool                // first is written
	pending chan runfile.Sample // of a scrape in progress, with its result only; or nil
	last    time.Time           // time of the last sample
	err     error
	stop    chan struct{}
	stopped chan struct{}
}

// scrapeTimeout is generous: a server at its limit may take seconds. There is
// only one scrape at a time.
const scrapeTimeout = 5 * time.Second

// Start scrapes the server's metrics and then starts sampling. When ctx ends,
// it stops waiting for the server.
func Start(ctx context.Context, cfg Config) *Sampler {
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	s := &Sampler{cfg: cfg, ctx: ctx, stop: make(chan struct{}), stopped: make(chan struct{})}
	s.scrape()
	s.receive(&s.first, true)
	s.meter.reset()
	s.last = time.Now()
	if cfg.ReadDelay != nil {
		cfg.ReadDelay()
	}
	go s.run()
	return s
}

// Stop takes the last sample, with the server's metrics from after the run, and
// returns the first error of Write.
func (s *Sampler) Stop() error {
	close(s.stop)
	<-s.stopped
	return s.err
}

func (s *Sampler) run() {
	defer close(s.stopped)
	ticker := time.NewTicker(s.cfg.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.sample(false)
		case <-s.stop:
			s.sample(true)
			return
		}
	}
}

// sample takes a sample if the run has started.
func (s *Sampler) sample(last bool) {
	status := s.cfg.Status()
	if status.Start.IsZero() || s.err != nil {
		return
	}
	if !s.started {
		s.started = true
		s.first.AtMS = max(0, trace.MS(s.last.Sub(status.Start)))
		s.write(s.first)
	}
	now := time.Now()
	span := now.Sub(s.last)
	s.last = now
	sample := runfile.Sample{
		AtMS: trace.MS(now.Sub(status.Start)), SpanMS: trace.MS(span),
		InFlight: status.InFlight, Sent: status.Sent, Done: status.Done,
	}
	s.meter.read(&sample, span)
	if s.cfg.ReadDelay != nil {
		sample.ReadDelay = s.cfg.ReadDelay()
	}
	// Use the scrape started at the previous sample, except at the end.
	s.receive(&sample, last)
	s.scrape()
	if last {
		s.receive(&sample, true)
	}
	s.write(sample)
}

// scrape starts a scrape of the server's metrics unless one is in progress.
func (s *Sampler) scrape() {
	if s.cfg.Server == nil || s.pending != nil {
		return
	}
	pending := make(chan runfile.Sample, 1)
	s.pending = pending
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, scrapeTimeout)
		defer cancel()
		if figures, err := s.cfg.Server(ctx); err != nil {
			pending <- runfile.Sample{ServerError: err.Error()}
		} else {
			pending <- runfile.Sample{Server: &figures}
		}
	}()
}

// receive adds the server's metrics to a sample if they have arrived, or waits
// for them if wait is set.
func (s *Sampler) receive(sample *runfile.Sample, wait bool) {
	if s.pending != nil && (wait || len(s.pending) > 0) {
		got := <-s.pending
		s.pending, sample.Server, sample.ServerError = nil, got.Server, got.ServerError
	}
}

func (s *Sampler) write(sample runfile.Sample) {
	if s.err == nil {
		s.err = s.cfg.Write(sample)
	}
}
