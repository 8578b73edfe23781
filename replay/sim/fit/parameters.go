package fit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"moontide/replay/sim/engine"
)

// decodePrefix begins the names of the costs of decode engines.
const decodePrefix = "decode-engine."

// parameter is a time of a deployment that can be fitted. The fit works with its
// logarithm.
type parameter struct {
	name      string
	low, high engine.Cost // bounds
	get       func(d *engine.Deployment) engine.Cost
	set       func(d *engine.Deployment, c engine.Cost)
	// table and entry are set if the parameter is the difference of an entry of a
	// decode table to the one before.
	table func(d *engine.Deployment) engine.DecodeTable
	entry int
}

// bounds are the bounds of the parameters, by name in [engine.Parameters].
var bounds = map[string][2]engine.Cost{
	"api-server-time":          {engine.Microsecond, engine.Second},
	"wake-up-time":             {engine.Microsecond, engine.Second},
	"request-latency":          {10 * engine.Microsecond, 10 * engine.Second},
	"step-base":                {10 * engine.Microsecond, 10 * engine.Second},
	"prefill-step":             {10 * engine.Microsecond, 10 * engine.Second},
	"prefill-per-token":        {10 * engine.Nanosecond, 10 * engine.Millisecond},
	"prefill-attention":        {engine.Picosecond, engine.Microsecond},
	"decode-per-context-token": {10 * engine.Picosecond, 100 * engine.Microsecond},
	"transfer-base":            {10 * engine.Microsecond, 10 * engine.Second},
	"transfer-per-token":       {10 * engine.Nanosecond, 10 * engine.Millisecond},
	"decode-table":             {engine.Microsecond, 10 * engine.Second},
}

// named returns the parameter with a name in [engine.Parameters] whose field is at.
func named(name, prefix string, at func(d *engine.Deployment, p engine.Parameter) any) parameter {
	known, found := engine.FindParameter(name)
	if !found {
		panic("fit: no parameter " + name)
	}
	return parameter{
		name: prefix + name, low: bounds[name][0], high: bounds[name][1],
		get: func(d *engine.Deployment) engine.Cost {
			switch field := at(d, known).(type) {
			case *engine.Cost:
				return *field
			case *time.Duration:
				return engine.CostOf(*field)
			}
			panic("fit: " + name + " is not a time")
		},
		set: func(d *engine.Deployment, c engine.Cost) {
			switch field := at(d, known).(type) {
			case *engine.Cost:
				*field = c
			case *time.Duration:
				*field = c.Duration()
			}
		},
	}
}

func ofDeployment(name string) parameter {
	return named(name, "", func(d *engine.Deployment, p engine.Parameter) any { return p.Field(d) })
}

func ofDecodeEngine(name string) parameter {
	return named(name, decodePrefix, func(d *engine.Deployment, p engine.Parameter) any { return p.OfEngine(d.DecodeEngine) })
}

// parametersOf returns the parameters of a deployment that are fitted; those that not
// all measurements show only if they are above 0. The base time
// of a step includes the first entry of the decode table, for one sequence: no
// measurement tells them apart. Neither can base and additional time of a prefill
// engine's steps be told apart, which all compute prompts.
func parametersOf(d engine.Deployment) []parameter {
	all := []parameter{ofDeployment("request-latency"), ofDeployment("step-base"), ofDeployment("prefill-per-token")}
	for _, name := range []string{"api-server-time", "wake-up-time", "prefill-attention"} {
		if p := ofDeployment(name); p.get(&d) > 0 {
			all = append(all, p)
		}
	}
	if !d.Disaggregated() {
		all = append(all, ofDeployment("prefill-step"), ofDeployment("decode-per-context-token"))
		return append(all, entries("", func(d *engine.Deployment) engine.DecodeTable { return d.Engine.Costs.Decode }, d)...)
	}
	all = append(all, ofDeployment("transfer-base"), ofDeployment("transfer-per-token"),
		ofDecodeEngine("step-base"), ofDecodeEngine("decode-per-context-token"))
	return append(all, entries(decodePrefix, func(d *engine.Deployment) engine.DecodeTable { return d.DecodeEngine.Costs.Decode }, d)...)
}

// entries returns the differences between the entries of a decode table, which stay
// in ascending order whatever they are.
func entries(prefix string, table func(d *engine.Deployment) engine.DecodeTable, d engine.Deployment) (all []parameter) {
	for i := 1; i < len(table(&d)); i++ {
		all = append(all, parameter{
			name: fmt.Sprintf("%sdecode-table.%d", prefix, table(&d)[i].Sequences),
			low:  bounds["decode-table"][0], high: bounds["decode-table"][1],
			get: func(d *engine.Deployment) engine.Cost { return table(d)[i].Cost - table(d)[i-1].Cost },
			set: func(d *engine.Deployment, c engine.Cost) {
				shift := c - (table(d)[i].Cost - table(d)[i-1].Cost)
				for k := i; k < len(table(d)); k++ {
					table(d)[k].Cost += shift
				}
			},
			table: table, entry: i,
		})
	}
	return all
}

// selects reports whether a list of names selects the parameter: by its name, or by
// that of its table.
func (p parameter) selects(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == p.name || p.table != nil && strings.HasPrefix(p.name, name+".")
	})
}

// with returns a copy of d with values of parameters, which are logarithms of costs.
func with(d engine.Deployment, parameters []parameter, at []float64) engine.Deployment {
	d = d.Clone()
	for i, p := range parameters {
		p.set(&d, engine.Cost(math.Round(math.Exp(at[i]))))
	}
	return d
}
