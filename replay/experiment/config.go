package experiment

import (
	"fmt"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/cluster"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
	"moontide/trace"
)

// Config describes a run. Only Trace is required: the zero value of all other
// fields replays it at its original speed against an embedded simulated
// endpoint and keeps no record.
type Config struct {
	Trace Trace
	// Pacing selects rows and sets arrivals. Run sets its Rebase, Closed and
	// seeds.
	Pacing trace.Pacing

	// Client configures the endpoint and the content of requests. Without a URL,
	// requests go to a simulated endpoint in this process. Virtual time uses Answers
	// and CancelAfter only. Run sets Source.Seed, Source.Salt and Source.BlockSize.
	Client openai.Config
	// Tokenizer is the path of a tokenizer.json: text prompts are words of one token
	// each in its vocabulary. Dataset is a file of texts to take prompts from, see
	// [prompt.ReadDataset]; it requires Tokenizer.
	Tokenizer, Dataset string
	Seed               uint64 // for prompts, drawn arrivals and simulated engines
	Salt               string // changes the prompt texts but not their prefix sharing

	// Virtual replays in virtual time, with simulated engines and no client.
	Virtual bool
	// Engines configures the simulated engines; the zero value is
	// [engine.Default].
	Engines engine.Deployment
	// EngineFile is the file that Engines is from, nil if none. A load outside its
	// fitted range has a warning.
	EngineFile     *fit.File
	CacheGenerated bool // the engines keep generated tokens in their prefix cache

	MaxConcurrency int  // limit of requests in flight; 0 is no limit
	Closed         bool // closed loop of MaxConcurrency or of Sessions.Open; ignores the trace's arrivals
	Sessions       replay.SessionLimits
	Duration       time.Duration
	MaxErrors      int // stops the run after this many failed requests; 0 is no limit
	Retries        int // retries of a request that got 429 or 503
	WarmupRequests int // sent before the run and not measured
	// WaitReady is how long to wait for the endpoint; 0 probes it once.
	WaitReady time.Duration

	// Dir is the run's folder; it must be empty or not exist. Without Dir, the
	// run is recorded in a temporary folder.
	Dir string
	// Resume continues the stopped or killed run in Dir, with the same configuration.
	Resume       bool
	KeepText     bool // records the texts of the trace instead of their SHA-256
	NoChunkTimes bool // records a histogram of the gaps between token chunks instead of every gap

	Window     runfile.Window     // part of the run that is measured
	Thresholds runfile.Thresholds // for the verdict
	// ServerBlockSize is the block size of the server's prefix cache in tokens, used to
	// predict cached tokens. 0 is that of ServerMetrics or of the simulated engines.
	ServerBlockSize int
	ServerMetrics   []string // URLs of Prometheus metrics to record every second
	// CalibrationFile is a file written by [Calibration.Save]; "" is none.
	CalibrationFile string

	// These are recorded in run.json unchanged.
	Version string
	Command []string
	Flags   []string

	// Member makes this process one of several that drive a run: it sends its part of
	// the trace's rows. Limits and Dir are those of the whole run. nil drives all of it.
	Member *cluster.Part
	// Part is the configuration that Member is to join with, for [Config.Check] before it
	// does. It may be nil.
	Part *cluster.Config

	senders          int              // parts with a share of the limits
	whole            runfile.Limits   // of all parts
	done             cluster.Progress // of all parts in the run that they resume
	begun            bool             // all parts have started
	leg              runfile.Leg      // of a sweep
	keepFirstArrival bool             // do not shift the first arrival to 0

	// Drain, when closed, stops sending; requests in flight finish.
	Drain    <-chan struct{}
	Observer Observer
}

// Observer follows a run. Its functions may be nil. They must return quickly
// and are called one at a time, except for Status of [Started].
type Observer struct {
	// Message is called with lines for the user while the run is prepared.
	Message func(text string)
	// Start is called before the first request is sent.
	Start func(s Started)
	// Record is called with the record of each request as it ends.
	Record func(rec replay.Record)
	// End is called after the last request has ended.
	End func()
}

func (o Observer) message(format string, args ...any) {
	if o.Message != nil {
		o.Message(fmt.Sprintf(format, args...))
	}
}

// Started describes a run that is about to send its first request.
type Started struct {
	Run    runfile.Run
	Dir    string
	Plan   replay.Plan
	Status func() replay.Status // may be called from any goroutine
	// Parts is the number of processes that drive the run and All the sum of their
	// Status, if this one leads several: Dir and the limits of Run are then those of all.
	// Otherwise they are 0 and nil.
	Parts int
	All   func() replay.Status
}

// Result is what a run measured.
type Result struct {
	Dir     string // "" without Config.Dir
	Run     runfile.Run
	Metrics *measure.Result
	Damaged []string // a message for each file of the record with unreadable lines
}

// ConfigError reports an invalid [Config]. Nothing was sent or written.
type ConfigError struct {
	Field string // of Config; "" if the error names its subject
	Err   error
}

func (e *ConfigError) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + " " + e.Err.Error()
}

func (e *ConfigError) Unwrap() error { return e.Err }

func wrong(field, format string, args ...any) error {
	return &ConfigError{field, fmt.Errorf(format, args...)}
}

const (
	maxRetries = 100
	maxWarmup  = 100_000 // the records are kept in memory
)

// Check validates the configuration without reading any file.
func (c *Config) Check() error {
	for field, n := range map[string]int{"MaxConcurrency": c.MaxConcurrency, "MaxErrors": c.MaxErrors, "ServerBlockSize": c.ServerBlockSize, "MaxSessions": c.Sessions.Open, "MaxTurns": c.Sessions.Turns} {
		if n < 0 {
			return wrong(field, "must not be negative: %d", n)
		}
	}
	for field, d := range map[string]time.Duration{
		"Duration": c.Duration, "CancelAfter": c.Client.CancelAfter, "WaitReady": c.WaitReady, "Timeout": c.Client.Timeout, "FirstByteTimeout": c.Client.FirstByteTimeout, "IdleTimeout": c.Client.IdleTimeout,
		"WarmupTime": seconds(c.Window.WarmupSeconds), "CooldownTime": seconds(c.Window.CooldownSeconds),
	} {
		if d < 0 {
			return wrong(field, "must not be negative: %v", d)
		}
	}
	t := c.Thresholds
	switch {
	case (c.Trace.Path == "") == (c.Trace.Requests == nil):
		return wrong("Trace", "needs either a path or requests")
	case c.Closed && c.MaxConcurrency == 0 && c.Sessions.Open == 0:
		return wrong("Closed", "needs a maximum concurrency or number of sessions")
	case c.Resume && c.Dir == "":
		return wrong("Resume", "needs the run's folder")
	case c.Resume && c.Virtual:
		return wrong("Resume", "does not work in virtual time: simulate again")
	case c.Retries < 0 || c.Retries > maxRetries:
		return wrong("Retries", "must be from 0 to %d: %d", maxRetries, c.Retries)
	case c.WarmupRequests < 0 || c.WarmupRequests > maxWarmup:
		return wrong("WarmupRequests", "must be from 0 to %d: %d", maxWarmup, c.WarmupRequests)
	case c.NoChunkTimes && c.Window != (runfile.Window{}):
		return wrong("NoChunkTimes", "discards what the warm-up and cool-down time are cut by")
	case c.embedded() && !c.Virtual && len(c.Client.Models) > 0:
		return wrong("Model", "names several models, which needs a URL: the embedded endpoint has one")
	case c.embedded() && !c.Virtual && c.Client.ModelFromTrace:
		return wrong("ModelFromTrace", "needs a URL: the embedded endpoint has one model")
	case t.MaxLagMS < 0:
		return wrong("MaxLag", "must not be negative")
	}
	for field, share := range map[string]float64{
		"MaxLagShare": t.MaxLagShare, "MaxPromptsOff": t.MaxPromptsOff, "MaxAnswersOff": t.MaxAnswersOff, "MaxFailed": t.MaxFailed,
	} {
		if share < 0 || share > 1 {
			return wrong(field, "must be above 0 and at most 1: %v", share)
		}
	}
	if err := c.checkPart(); err != nil {
		return err
	}
	p := c.Pacing
	p.Closed = c.Closed
	if err := p.Check(); err != nil {
		return &ConfigError{"", err}
	}
	return c.checkPrompts()
}

// embedded reports whether requests go to an endpoint in this process.
func (c *Config) embedded() bool { return c.Client.URL == "" && len(c.Client.URLs) == 0 }

func (c *Config) liveAnswers() bool { return c.Client.Answers == openai.LiveAnswers }

func (c *Config) engines() engine.Deployment {
	d := c.Engines
	if d.IsZero() {
		d = engine.Default()
	}
	d.Seed = c.Seed
	return d
}

// serverBlockSize returns the configured block size of the server's prefix cache,
// 0 if unknown.
func (c *Config) serverBlockSize() int {
	if c.embedded() || c.Virtual {
		return c.engines().Engine.WithDefaults().BlockSize
	}
	return c.ServerBlockSize
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
