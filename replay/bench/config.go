package bench

import (
	"fmt"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/trace"
)

// Config describes a run. Only Trace must be set: the zero value of all other
// fields replays it at its own speed against an embedded simulated endpoint and
// keeps no record.
type Config struct {
	Trace Trace
	// Pacing selects rows and sets arrivals. Run sets its Rebase, its Closed and
	// its seeds.
	Pacing trace.Pacing

	// Client is the endpoint and what requests contain. Without a URL the
	// requests go to a simulated endpoint in this process. Run sets its
	// Source.Seed, Source.Salt and Source.BlockSize.
	Client openai.Config
	// Tokenizer is a tokenizer.json: prompts are then words of one token each in
	// its vocabulary. Dataset is a file or folder of texts that prompts are
	// passages of; it needs Tokenizer. See [moontide/replay/prompt/dataset].
	Tokenizer, Dataset string
	Seed               uint64 // of prompts, drawn arrivals and simulated engines
	Salt               string // changes the prompt texts but not their sharing

	// Virtual replays in virtual time: simulated engines without a client.
	Virtual bool
	// Engines are the simulated engines; the zero value is [engine.Default].
	Engines        engine.Deployment
	CacheGenerated bool // the engines keep generated tokens in their prefix cache

	MaxConcurrency int  // requests in flight; 0 is no limit
	Closed         bool // a closed loop of MaxConcurrency: the trace's arrivals are ignored
	Duration       time.Duration
	MaxErrors      int // stops the run after as many failed requests; 0 is never
	Retries        int // of a request that got 429 or 503
	WarmupRequests int // sent and not measured before the run
	// WaitReady is how long to wait for the endpoint; 0 probes it once.
	WaitReady time.Duration

	// Dir is the run's folder; it must not exist or be empty. Without one the
	// run is recorded in a temporary folder.
	Dir string
	// Resume continues the stopped or killed run in Dir. The configuration must
	// be that of the run.
	Resume       bool
	KeepText     bool // records texts of the trace instead of their SHA-256
	NoChunkTimes bool // records a histogram of the gaps between token chunks instead of each

	Window        runfile.Window     // of the run that is measured
	Thresholds    runfile.Thresholds // of the verdict
	ServerMetrics []string           // URLs of Prometheus metrics to record every second
	// CalibrationFile is where [Calibration.Save] saved; "" is none.
	CalibrationFile string

	// Recorded in run.json as they are.
	Version string
	Command []string
	Flags   []string

	keepFirstArrival bool // the first arrival does not become 0

	// Drain, when closed, stops the sending; requests in flight finish.
	Drain    <-chan struct{}
	Observer Observer
}

// Observer follows a run. Its functions may be nil. They must return quickly and
// are called one at a time, except for Status of [Started].
type Observer struct {
	// Message gets text for the user while the run is prepared: one or more lines.
	Message func(text string)
	// Row gets each row that will be replayed, in order, before the run starts.
	Row func(r trace.Request)
	// Start is called before the first request is sent.
	Start func(s Started)
	// Record gets the record of each request as it ends.
	Record func(rec replay.Record)
	// End is called when the last request has ended.
	End func()
}

func (o Observer) message(format string, args ...any) {
	if o.Message != nil {
		o.Message(fmt.Sprintf(format, args...))
	}
}

// Started is a run that begins to send.
type Started struct {
	Run    runfile.Run
	Dir    string
	Plan   replay.Plan
	Status func() replay.Status // may be called from any goroutine
}

// Result is what a run measured.
type Result struct {
	Dir     string // "" without Config.Dir
	Run     runfile.Run
	Metrics *run.Result
	Damaged []string // one line for each file of the record with unreadable lines
}

// ConfigError says what is wrong with a [Config]. Nothing was sent or written.
type ConfigError struct {
	Field string // of Config; "" if the error names what it is about
	Err   error
}

func (e *ConfigError) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + " " + e.Err.Error()
}

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

func wrong(field, format string, args ...any) error {
	return &ConfigError{field, fmt.Errorf(format, args...)}
}

const (
	maxRetries = 100
	maxWarmup  = 100_000 // they are kept in memory
)

// check returns what is wrong with the configuration as far as it can be known
// without reading a file.
func (c *Config) check() error {
	for field, n := range map[string]int{"MaxConcurrency": c.MaxConcurrency, "MaxErrors": c.MaxErrors} {
		if n < 0 {
			return wrong(field, "must not be negative: %d", n)
		}
	}
	for field, d := range map[string]time.Duration{
		"Duration": c.Duration, "WaitReady": c.WaitReady, "Timeout": c.Client.Timeout, "IdleTimeout": c.Client.IdleTimeout,
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
	case c.Closed && c.MaxConcurrency == 0:
		return wrong("Closed", "needs a maximum concurrency")
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
	case t.MaxLagMS < 0:
		return wrong("MaxLag", "must not be negative")
	case t.MaxLagShare < 0 || t.MaxLagShare > 1:
		return wrong("MaxLagShare", "must be above 0 and at most 1: %v", t.MaxLagShare)
	case t.MaxPromptsOff < 0 || t.MaxPromptsOff > 1:
		return wrong("MaxPromptsOff", "must be above 0 and at most 1: %v", t.MaxPromptsOff)
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

func (c *Config) engines() engine.Deployment {
	d := c.Engines
	if d == (engine.Deployment{}) {
		d = engine.Default()
	}
	d.Seed = c.Seed
	return d
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
