package engine

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"moontide/trace/routing"
)

// Deployment configures engines that serve together. The zero value has one
// engine.
type Deployment struct {
	// Engine configures each engine.
	Engine Config
	// Engines is the number of engines behind the router; 0 is one.
	Engines int
	// Routing selects the engine for a request: in a disaggregated deployment,
	// the prefill engine. "" is [routing.RoundRobin]. Decode engines are
	// selected by [routing.LeastLoaded].
	Routing routing.Policy
	// Seed is the seed for [routing.Random].
	Seed uint64
	// Prefill and Decode, if both are above 0, make the deployment
	// disaggregated: Prefill engines compute prompts and first tokens, Decode
	// engines the remaining tokens.
	Prefill, Decode int
	// Transfer is the time to transfer the KV cache of a prompt from a prefill
	// to a decode engine. Transfers do not slow each other down.
	Transfer Transfer
}

// Transfer configures the time of a KV cache transfer.
type Transfer struct {
	Base     time.Duration
	PerToken time.Duration // of the prompt
}

// MaxEngines is the maximum number of engines of each kind in a deployment.
const MaxEngines = 1024

// Disaggregated reports whether separate engines compute prompts and answers.
func (d Deployment) Disaggregated() bool { return d.Prefill > 0 && d.Decode > 0 }

// String describes the deployment.
func (d Deployment) String() string {
	policy := cmp.Or(d.Routing, routing.RoundRobin)
	switch {
	case d.Disaggregated():
		return fmt.Sprintf("%d prefill and %d decode engines, %s routing", d.Prefill, d.Decode, policy)
	case d.Engines > 1:
		return fmt.Sprintf("%d engines, %s routing", d.Engines, policy)
	}
	return "1 engine"
}

// Validate returns the first error in d.
func (d Deployment) Validate() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"engines", d.Engines}, {"prefill engines", d.Prefill}, {"decode engines", d.Decode}} {
		if n.value < 0 || n.value > MaxEngines {
			return fmt.Errorf("engine: a deployment of %d %s; at most %d", n.value, n.name, MaxEngines)
		}
	}
	switch {
	case (d.Prefill > 0) != (d.Decode > 0):
		return fmt.Errorf("engine: %d prefill and %d decode engines: set both or neither", d.Prefill, d.Decode)
	case d.Disaggregated() && d.Engines > 0:
		return errors.New("engine: set Engines, or Prefill and Decode, not both")
	case d.Transfer.Base < 0 || d.Transfer.Base > maxCost || d.Transfer.PerToken < 0 || d.Transfer.PerToken > maxCost:
		return fmt.Errorf("engine: transfer time is not from 0 to %v: %v and %v a token", maxCost, d.Transfer.Base, d.Transfer.PerToken)
	}
	if d.Routing != "" {
		if _, err := routing.Parse(string(d.Routing)); err != nil {
			return fmt.Errorf("engine: %w", err)
		}
	}
	return d.Engine.Validate()
}

// New returns the deployment at time 0, idle and with empty caches.
func (d Deployment) New() (*Cluster, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{transfer: d.Transfer, blockSize: d.Engine.WithDefaults().BlockSize}
	front := max(d.Engines, 1)
	if d.Disaggregated() {
		front = d.Prefill
	}
	var err error
	if c.front, err = newPool(d.Engine, front, d.Routing, d.Seed); err != nil || !d.Disaggregated() {
		return c, err
	}
	for _, e := range c.front.engines {
		e.prefillOnly = true
	}
	c.decode, err = newPool(d.Engine, d.Decode, routing.LeastLoaded, 0)
	return c, err
}
