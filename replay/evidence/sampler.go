// Package sampler watches a run while it lasts: what the client costs the
// machine, what the Go runtime keeps it from, and what the server says of
// itself, second by second. It is the evidence by which a report can tell why
// a client was late.
//
// [Start] begins to sample, and [Sampler.Stop] ends it with a last sample. A
// sample costs some twenty microseconds, and nothing that is read stops the
// program: neither the sender nor the readers notice.
package evidence

import (
	"context"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// Config says what is watched, and where samples go.
type Config struct {
	// Write keeps a sample. It is called from one goroutine at a time, and no
	// more after it has failed.
	Write func(runfile.Sample) error
	// Status is where the run is. No sample is taken before it has started.
	Status func() replay.Status
	// ReadDelay, unless it is nil, is how late the client read since the call
	// before.
	ReadDelay func() runfile.ReadDelay
	// Server, unless it is nil, asks the server for its figures. It must return
	// soon after its context ends.
	Server func(context.Context) (runfile.ServerFigures, error)
	// Every is the time from sample to sample; 0 is a second.
	Every time.Duration
}

// Sampler samples a run.
type Sampler struct {
	cfg     Config
	meter   meter
	began   runfile.Sample // with what the server said before the run
	started bool           // began is written
	asked   chan answer    // nil while the server is not being asked
	before  time.Time      // of the sample before
	err     error
	stop    chan struct{}
	stopped chan struct{}
}

// answer is what came of asking the server.
type answer struct {
	figures runfile.ServerFigures
	err     error
}

// patience is how long the server has to answer. A server at its limit may well
// take longer than a second, and is asked again only when it has answered.
const patience = 5 * time.Second

// Start begins to sample. It first waits for the server's figures, if they are
// asked for: those from before the run.
func Start(cfg Config) *Sampler {
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	s := &Sampler{cfg: cfg, stop: make(chan struct{}), stopped: make(chan struct{})}
	s.ask()
	s.hear(&s.began, true)
	s.meter.reset()
	s.before = time.Now()
	if cfg.ReadDelay != nil {
		cfg.ReadDelay()
	}
	go s.run()
	return s
}

// Stop takes the last sample, with the server's figures from after the run, and
// returns what went wrong in writing samples.
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

// sample takes a sample, if the run has started.
func (s *Sampler) sample(last bool) {
	status := s.cfg.Status()
	if status.Start.IsZero() || s.err != nil {
		return
	}
	if !s.started {
		s.started = true
		s.began.AtMS = max(0, ms(s.before.Sub(status.Start)))
		s.write(s.began)
	}
	now := time.Now()
	span := now.Sub(s.before)
	s.before = now
	sample := runfile.Sample{
		AtMS: ms(now.Sub(status.Start)), SpanMS: ms(span),
		InFlight: status.InFlight, Sent: status.Sent, Done: status.Done,
	}
	s.meter.read(&sample, span)
	if s.cfg.ReadDelay != nil {
		sample.ReadDelay = s.cfg.ReadDelay()
	}
	// The answer is to what was asked a sample ago, except at the end.
	s.hear(&sample, last)
	s.ask()
	if last {
		s.hear(&sample, true)
	}
	s.write(sample)
}

// ask asks the server, unless it has not answered yet.
func (s *Sampler) ask() {
	if s.cfg.Server == nil || s.asked != nil {
		return
	}
	asked := make(chan answer, 1)
	s.asked = asked
	go func() {
		ctx, end := context.WithTimeout(context.Background(), patience)
		defer end()
		figures, err := s.cfg.Server(ctx)
		asked <- answer{figures, err}
	}()
}

// hear puts the server's answer into a sample, if there is one, or when there is
// one.
func (s *Sampler) hear(sample *runfile.Sample, wait bool) {
	if s.asked == nil {
		return
	}
	var a answer
	if wait {
		a = <-s.asked
	} else {
		select {
		case a = <-s.asked:
		default:
			return
		}
	}
	s.asked = nil
	if a.err != nil {
		sample.Server, sample.ServerError = nil, a.err.Error()
		return
	}
	sample.Server, sample.ServerError = &a.figures, ""
}

func (s *Sampler) write(sample runfile.Sample) {
	if s.err == nil {
		s.err = s.cfg.Write(sample)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
