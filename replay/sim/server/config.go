package server

import (
	"fmt"

	"moontide/replay/sim/engine"
)

// Config configures a [Server]. The zero value serves the model "sim" as fast as
// the machine can.
type Config struct {
	Model      string            // the one model that is served; default "sim"
	Deployment engine.Deployment // computes the answers
	// TimeScale makes the deployment so many times as fast as real time, from
	// [LeastTimeScale] to [MostTimeScale]; 0 is 1.
	TimeScale float64
	// CacheGenerated also caches generated tokens, so that the next turn of a
	// conversation, which repeats them, need not compute them.
	CacheGenerated bool
	MaxBody        int // bytes of a request's body; 0 is 64 MiB
	// Faults are simulated, each in its share of the requests that those before
	// it leave. A request can ask for another one in a header.
	Faults  []Fault
	Seed    uint64 // of the faults: which requests, and where in the stream
	Version string // what /version returns
}

// Limits of [Config.TimeScale]: beyond them the deployment's time would overflow
// within weeks, or its next event be years away.
const (
	LeastTimeScale = 0.001
	MostTimeScale  = 1000
)

func (c Config) withDefaults() Config {
	if c.Model == "" {
		c.Model = "sim"
	}
	c.Deployment.Engine = c.Deployment.Engine.WithDefaults()
	if c.TimeScale == 0 {
		c.TimeScale = 1
	}
	if c.MaxBody <= 0 {
		c.MaxBody = 64 << 20
	}
	return c
}

func (c Config) validate() error {
	if !(c.TimeScale >= LeastTimeScale && c.TimeScale <= MostTimeScale) {
		return fmt.Errorf("time scale must be from %v to %v, got %v", LeastTimeScale, MostTimeScale, c.TimeScale)
	}
	return nil
}
