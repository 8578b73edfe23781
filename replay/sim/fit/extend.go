package fit

import (
	"context"
	"math"

	"moontide/replay/sim/engine"
)

// extension is a parameter that is fitted only if it explains what the others do not.
type extension struct {
	name string
	// shown reports whether measurements of engines that compute prompts and answers
	// show the parameter.
	shown func(rows []Measurement) bool
	// add adds it to a fitted deployment, taking the time from another parameter.
	add func(d *engine.Deployment, rows []Measurement)
}

var extensions = []extension{
	{"api-server-time", showAPIServer, func(d *engine.Deployment, _ []Measurement) {
		d.APIServer = d.Latency / 2
		d.Latency -= d.APIServer
	}},
	{"prefill-attention", showAttention, func(d *engine.Deployment, rows []Measurement) {
		// Half of the time of the longest prompt is then linear in its length.
		costs := &d.Engine.Costs
		costs.Attention = max(costs.PrefillToken/engine.Cost(longestPrompt(rows)), engine.Picosecond)
		costs.PrefillToken /= 2
	}},
	{"wake-up-time", showWakeUp, func(d *engine.Deployment, _ []Measurement) { d.WakeUp = d.Latency / 2 }},
}

const (
	// Prompts this long, or long ones beside short ones, show how much longer a token
	// takes after many others.
	quadraticPrompt = 6000
	longPrompt      = 1000
	quadraticRange  = 16
	// So many short prompts in flight show that they are not received at once.
	shortPrompt = 128
	manyPrompts = 16
	// With fewer requests in flight on average, some find no other.
	fewInFlight = 2
)

func showAttention(rows []Measurement) bool {
	longest := longestPrompt(rows)
	for _, m := range rows {
		if longest >= longPrompt && quadraticRange*m.Load.meanComputed() <= float64(longest) {
			return true
		}
	}
	return longest >= quadraticPrompt
}

func showAPIServer(rows []Measurement) bool {
	for _, m := range rows {
		if m.Load.closed() && m.Load.Concurrency >= manyPrompts && m.Load.meanComputed() <= shortPrompt {
			return true
		}
	}
	return false
}

func showWakeUp(rows []Measurement) bool {
	for _, m := range rows {
		if !m.Load.closed() && m.Values[RequestThroughput]*m.Values[MeanE2EL]/1000 < fewInFlight {
			return true
		}
	}
	return false
}

// extend adds the extensions that explain more than chance does by Akaike's information
// criterion ("A New Look at the Statistical Model Identification", IEEE Transactions on
// Automatic Control 19, 1974).
func (f *fitter) extend(ctx context.Context, best attempt) (attempt, error) {
	if f.options.Refit != nil || best.deployment.Disaggregated() {
		return best, nil
	}
	rows := f.fitted()
	for _, x := range extensions {
		if !x.shown(rows) || ofDeployment(x.name).selects(f.options.Fixed) {
			continue
		}
		d := with(best.deployment, best.free, best.at)
		x.add(&d, rows)
		a, err := f.begin(d)
		if err != nil {
			return best, err
		}
		a.problem.scale = best.problem.scale
		a.solution = a.problem.solve(ctx, a.at, manyIterations)
		n := float64(len(best.residuals))
		if a.loss > 0 && n*math.Log(best.loss/a.loss) > 2 {
			best = a
		}
	}
	return best, nil
}
