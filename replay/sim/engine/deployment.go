package engine

import (
	"errors"
	"fmt"
	"time"
)

// Deployment says what serves together. The zero value is one engine.
type Deployment struct {
	// Engine is what each engine is like.
	Engine Config
	// Engines is how many there are behind the router; 0 is one.
	Engines int
	// Router says which engine a request goes to; "" is [RoundRobin]. It
	// chooses among the prefill engines where there are such. A request goes
	// to the decode engine with the least load.
	Router Routing
	// Seed is the random router's.
	Seed uint64
	// Prefill and Decode, both above 0, make a disaggregated deployment
	// instead: Prefill engines compute prompts and first tokens, Decode
	// engines the rest of the answers.
	Prefill, Decode int
	// Transfer is how long the keys and values of a prompt are on their way
	// from a prefill to a decode engine, in any number at once.
	Transfer Transfer
}

// Transfer is the time that keys and values are on their way.
type Transfer struct {
	Base     time.Duration // whatever the length
	PerToken time.Duration // of the prompt
}

// MostEngines is the most engines that a deployment may have of a kind.
const MostEngines = 1024

// Disaggregated says whether prompts are computed apart from answers.
func (d Deployment) Disaggregated() bool { return d.Prefill > 0 && d.Decode > 0 }

// String is the deployment in words.
func (d Deployment) String() string {
	router := d.Router
	if router == "" {
		router = RoundRobin
	}
	switch {
	case d.Disaggregated():
		return fmt.Sprintf("%d prefill and %d decode engines, %s", d.Prefill, d.Decode, router)
	case d.Engines > 1:
		return fmt.Sprintf("%d engines, %s", d.Engines, router)
	}
	return "1 engine"
}

// Validate says what is wrong with d, if anything.
func (d Deployment) Validate() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"engines", d.Engines}, {"prefill engines", d.Prefill}, {"decode engines", d.Decode}} {
		if n.value < 0 || n.value > MostEngines {
			return fmt.Errorf("engine: a deployment of %d %s; at most %d", n.value, n.name, MostEngines)
		}
	}
	switch {
	case (d.Prefill > 0) != (d.Decode > 0):
		return fmt.Errorf("engine: %d prefill and %d decode engines: there are both or none", d.Prefill, d.Decode)
	case d.Disaggregated() && d.Engines > 0:
		return errors.New("engine: a deployment has engines for everything, or prefill and decode engines")
	case d.Transfer.Base < 0 || d.Transfer.Base > mostCost || d.Transfer.PerToken < 0 || d.Transfer.PerToken > mostCost:
		return fmt.Errorf("engine: transfer time is not from 0 to %v: %v and %v a token", mostCost, d.Transfer.Base, d.Transfer.PerToken)
	}
	if d.Router != "" {
		if _, err := ParseRouting(string(d.Router)); err != nil {
			return err
		}
	}
	return d.Engine.Validate()
}

// New returns the deployment at the time 0, idle and with empty caches.
func (d Deployment) New() (*Cluster, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{transfer: d.Transfer, blockSize: d.Engine.WithDefaults().BlockSize}
	if !d.Disaggregated() {
		c.front = newPool(d.Engine, max(d.Engines, 1), newRouter(d.Router, d.Seed))
		return c, nil
	}
	c.front = newPool(d.Engine, d.Prefill, newRouter(d.Router, d.Seed))
	for _, e := range c.front.engines {
		e.holds = true
	}
	c.decode = newPool(d.Engine, d.Decode, leastLoaded{})
	return c, nil
}
