package report

import (
	"io"

	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/trace"
)

// PlanJSON is the form of a plan in JSON. Values that are not known are null.
type PlanJSON struct {
	Trace       string               `json:"trace"`      // name
	Requests    int                  `json:"requests"`   // of the trace
	Objectives  []string             `json:"objectives"` // conditions that must hold or, after "not ", must not; null without
	Deployments []PlanDeploymentJSON `json:"deployments"`
	// Front holds the names of the deployments on the Pareto front of throughput per
	// engine and a latency, by the metric of the latency.
	Front map[string][]string `json:"front"`
	Notes []string            `json:"notes"` // and warnings
	// HeldOutErrors are shares of the values, by metric, that nine in ten predictions of
	// held-out measurements did not exceed; empty for engines that were not fitted.
	HeldOutErrors map[string]float64 `json:"held_out_errors"`
}

// PlanDeploymentJSON is what a deployment would do.
type PlanDeploymentJSON struct {
	Deployment     string   `json:"deployment"` // name
	Engines        int      `json:"engines"`    // in total
	PrefillEngines int      `json:"prefill_engines"`
	DecodeEngines  int      `json:"decode_engines"`
	Routing        string   `json:"routing"`
	Variant        string   `json:"variant"`      // what differs besides the numbers of engines
	OfferedRate    *float64 `json:"offered_rate"` // requests per second
	// Metrics has the same keys as the summary of a run.
	Metrics             map[string]*float64 `json:"metrics"`
	ThroughputPerEngine *float64            `json:"output_throughput_per_engine"` // tokens per second
	MeanQueueMS         *float64            `json:"mean_queue_ms"`                // of a request at its first engine
	Completed           int                 `json:"completed"`
	Failed              int                 `json:"failed"`
	Verdict             string              `json:"verdict"`
	Gates               []GateJSON          `json:"gates"`    // null without objectives
	Met                 bool                `json:"met"`      // all objectives, and the verdict is not INVALID
	Warnings            []string            `json:"warnings"` // null without
}

// JSON writes the plan as one indented JSON object.
func (p Plan) JSON(w io.Writer) error {
	j := PlanJSON{Trace: p.Trace, Requests: p.Requests, Deployments: []PlanDeploymentJSON{}, HeldOutErrors: p.HeldOut, Front: map[string][]string{}, Notes: []string{}}
	if j.HeldOutErrors == nil {
		j.HeldOutErrors = map[string]float64{}
	}
	for _, g := range p.Gates {
		j.Objectives = append(j.Objectives, objective(g))
	}
	for i := range p.Predictions {
		j.Deployments = append(j.Deployments, p.deploymentJSON(&p.Predictions[i]))
	}
	for _, l := range []run.Latency{run.TTFT, run.TPOT} {
		m := p.latencyMetric(l)
		j.Front[m.Key] = append([]string{}, p.front(m)...)
	}
	for _, n := range p.Document().Notes {
		j.Notes = append(j.Notes, n.String())
	}
	return writeJSON(w, j)
}

func pointer(v trace.Opt[float64]) *float64 {
	if v = finite(v); !v.Set {
		return nil
	}
	return &v.Value
}

func (p Plan) deploymentJSON(r *bench.Prediction) PlanDeploymentJSON {
	j := PlanDeploymentJSON{
		Deployment: r.Name(), Engines: r.Total(), PrefillEngines: r.Prefill, DecodeEngines: r.Decode, Routing: string(r.Routing), Variant: r.Variant,
		OfferedRate: pointer(r.OfferedRate), ThroughputPerEngine: pointer(r.PerEngine(p.value(&r.Forecast, planThroughput))), MeanQueueMS: pointer(r.MeanQueue()),
		Completed: r.Completed, Failed: r.Failed, Verdict: r.Verdict.Level.String(), Met: r.Met, Warnings: r.Warnings, Metrics: map[string]*float64{},
	}
	for k, m := range p.Metrics {
		j.Metrics[m.Key] = pointer(r.Values[k])
	}
	j.Gates = gateObjects(r.Judgements)
	return j
}
