package server

import (
	"fmt"

	"moontide/replay/sim/engine"
)

// Config says what the simulated server is. The zero value works: it serves
// the model "sim" as fast as the machine can.
type Config struct {
	// Model is the one model that is served; "" is "sim".
	Model string
	// Deployment is what computes the answers.
	Deployment engine.Deployment
	// TimeScale is how many times as fast as time the deployment works, from
	// [LeastTimeScale] to [MostTimeScale]; 0 is 1.
	TimeScale float64
	// CacheGenerated has generated tokens cached too, so that the next turn of
	// a conversation, which repeats them, need not compute them.
	CacheGenerated bool
	// MaxBody is the largest body of a request in bytes; 0 or less is 64 MiB.
	MaxBody int
	// Faults go wrong with the answers, each with its share of those that the
	// ones before it leave. A request may name another one in a header.
	Faults []Fault
	// Seed is that of the faults: which of the requests, in the order in which
	// they come, and where.
	Seed uint64
	// Version is what /version says.
	Version string
}

// Beyond these the deployment's time would overflow within weeks, or its next
// event be years away.
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

// validate says what is wrong with c, which has its defaults, if anything. The
// deployment is another matter.
func (c Config) validate() error {
	if !(c.TimeScale >= LeastTimeScale && c.TimeScale <= MostTimeScale) {
		return fmt.Errorf("simserver: the time scale is not from %v to %v: %v", LeastTimeScale, MostTimeScale, c.TimeScale)
	}
	return nil
}
