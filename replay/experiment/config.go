package experiment

import (
	"fmt"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/replay/cluster"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
	"moontide/trace"
)

// Config describes a run. Only a trace is required.
type Config struct {
	settings.Settings
	// Requests are the trace, instead of a path or a description. They are iterated several
	// times and must yield the same rows each time.
	Requests trace.Requests
	Name     string // of the trace in reports; "" is the base name of its path

	// Resume continues the stopped or killed run in the folder, with the same settings.
	Resume bool
	// CalibrationFile is a file written by [Calibration.Save]; "" is none.
	CalibrationFile string

	// These are recorded in run.json unchanged.
	Version string
	Command []string

	// Part makes this process one of several that drive a run: it sends its part of the
	// trace's rows. Limits and the folder are those of the whole run. nil drives all of it.
	Part *cluster.Part
	// Copy is a copy of the trace, read instead of the path: of standard input.
	Copy string

	file             *fit.File         // of the engines; nil without one
	engines          engine.Deployment // of the file and the settings
	recorded         settings.Settings // in run.json: those of all parts
	senders          int               // parts with a share of the limits
	done             cluster.Progress  // of all parts in the run that they resume
	begun            bool              // all parts have started
	point            Point             // of a set
	keepFirstArrival bool              // do not shift the first arrival to 0

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

func wrong(format string, args ...any) error {
	return &settings.Error{Text: fmt.Sprintf(format, args...)}
}

// Check validates the configuration without reading any file.
func (c *Config) Check() error {
	sources := 0
	for _, is := range []bool{c.Requests != nil, c.Trace.Path != "", c.Described()} {
		if is {
			sources++
		}
	}
	switch {
	case sources > 1 || sources == 0 && c.Copy == "":
		return wrong("a run needs a trace, requests, or a description of them, and only one")
	case c.Resume && c.Output.Dir == "":
		return wrong("a run is resumed in its folder: {out} is empty")
	case c.Resume && c.Virtual:
		return wrong("a run in virtual time cannot be resumed: simulate again")
	}
	if _, err := slo.ParseObjectives(c.Objectives.Goodput); err != nil && c.Objectives.Goodput != "" {
		return wrong("{goodput}: %v", err)
	}
	return c.Settings.Check()
}

// serverBlockSize returns the configured block size of the server's prefix cache,
// 0 if unknown.
func (c *Config) serverBlockSize() int {
	if c.Embedded() || c.Virtual {
		return c.engines.Engine.WithDefaults().BlockSize
	}
	return c.ServerBlockSize
}

// prepare checks the configuration and reads the file of the engines.
func (c *Config) prepare() (err error) {
	if err = c.Check(); err != nil {
		return err
	}
	c.recorded = c.Settings
	if c.EngineFile != "" && c.file == nil {
		if c.file, err = fit.ReadFile(c.EngineFile); err != nil {
			return err
		}
	}
	base := engine.Default()
	if c.file != nil {
		base = c.file.Deployment
	}
	c.engines, err = c.Deployment(base)
	return err
}

// simulates reports whether settings describe the simulated engines.
func (c *Config) simulates() bool {
	d := engine.Default()
	d.Seed = c.Seed
	return c.file != nil || c.engines.String() != d.String()
}
