package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/replay/sim/fit"
	"moontide/trace"
	"moontide/trace/stats"
)

// EngineMeasurement is a recorded run as a measurement of the engines that served it.
type EngineMeasurement struct {
	fit.Measurement
	SHA256 string // of the record
	Model  string
	Server string // such as vllm, "" if unknown
	// BlockSize is that of the prefix cache, KVTokens the size of all KV caches, in
	// tokens by the server's metrics; 0 is unknown.
	BlockSize, KVTokens int
	// Unfit is why the run must not be fitted, "" if it may be. Invalid means that its
	// verdict is the reason.
	Unfit   string
	Invalid bool
}

// ReadEngineRun reads the run in a folder: of a closed loop the requests in order and the
// limit in flight, else the requests with the times at which they were sent. Cached prompt
// tokens are those that the server reported.
func ReadEngineRun(dir string) (*EngineMeasurement, error) {
	whole := func(info *runfile.Run) { info.Settings.Window = runfile.Window{} }
	measured, err := Measure(MeasureConfig{Change: whole}, dir)
	if err != nil {
		return nil, err
	}
	m := &EngineMeasurement{Model: measured.Run.Target.Model}
	m.Name = filepath.Base(filepath.Clean(dir))
	if m.SHA256, err = digestPath(filepath.Join(dir, runfile.RequestsFile)); err != nil {
		return nil, err
	}
	m.Values = fit.Values{}
	for _, metric := range fit.Metrics {
		m.Values[metric] = measure.MustMetric(string(metric)).Value(measured.Metrics).Value
	}
	m.judge(measured)
	if err := m.readServer(dir); err != nil {
		return nil, err
	}
	return m, m.readLoad(dir, measured.Run)
}

// judge sets why the run must not be fitted.
func (m *EngineMeasurement) judge(r *Result) {
	v := r.Metrics.Verdict
	warm := r.Metrics.Cache.Prediction.Causes[measure.Warm]
	switch {
	case !r.Run.Finished():
		m.Unfit = "the run is not complete"
	case r.Metrics.Completed == 0:
		m.Unfit = "no request succeeded"
	case v.Level == measure.Invalid:
		m.Unfit, m.Invalid = "the run is INVALID: "+v.Reasons()[0], true
	case warm.Requests > 0:
		m.Unfit = fmt.Sprintf("warm cache: %d requests found %d tokens that no request of the run can have cached", warm.Requests, warm.Tokens)
	}
}

// readServer reads the server's metrics.
func (m *EngineMeasurement) readServer(dir string) error {
	for s, err := range runfile.Samples(dir) {
		if err != nil {
			return err
		}
		if s.Server == nil {
			continue
		}
		m.Server = cmp.Or(m.Server, s.Server.Engine)
		if s.Server.BlockSize != nil && s.Server.CapacityTokens != nil {
			m.BlockSize, m.KVTokens = int(*s.Server.BlockSize), int(*s.Server.CapacityTokens)
		}
	}
	return nil
}

// readLoad reads the requests of the run.
func (m *EngineMeasurement) readLoad(dir string, info runfile.Run) error {
	r, err := OpenRecording(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	loop := info.Settings.Closed && info.Settings.MaxConcurrency > 0 && info.Settings.Sessions.Open == 0
	if loop {
		m.Load.Concurrency = info.Settings.MaxConcurrency
	}
	type sent struct {
		row int
		fit.Request
	}
	var all []sent
	var input, output stats.Collector
	for rec, err := range r.Records {
		if err != nil {
			return err
		}
		if rec.Class != replay.OK || !rec.Sent.Set {
			continue
		}
		one := sent{rec.Row, requestOf(&rec)}
		if loop {
			one.Arrival = 0
		}
		all = append(all, one)
		input.Add(float64(one.Input))
		output.Add(float64(one.Output))
	}
	slices.SortFunc(all, func(a, b sent) int { return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.row, b.row)) })
	first := time.Duration(0)
	if len(all) > 0 {
		first = all[0].Arrival
	}
	for _, one := range all {
		one.Arrival -= first
		m.Load.Requests = append(m.Load.Requests, one.Request)
	}
	m.Load.ISL, m.Load.OSL, m.Load.MeanOutput = int(input.Sample().Mean), int(output.Sample().Mean), output.Sample().Mean
	return nil
}

// requestOf returns a record as a request of a load.
func requestOf(rec *replay.Record) fit.Request {
	output, _ := rec.OutputTokens()
	r := fit.Request{Arrival: rec.Sent.Value, Input: max(rec.InputLength, 1), Output: max(output, 1)}
	if rec.Counts.Input.Set {
		r.Input = max(rec.Counts.Input.Value, 1)
	}
	// The last token of a prompt is always computed.
	r.CachedInput = min(max(rec.Counts.Cached.Value, 0), r.Input-1)
	return r
}

// EngineRun is a run of [PlanEngineRuns], in a closed loop with different prompts.
type EngineRun struct {
	Name                            string
	ISL, OSL, Concurrency, Requests int
	// Spread is the relative deviation of request lengths from ISL and OSL, up or down.
	Spread float64
	// Shows names the parameters that the run identifies.
	Shows string
}

// EngineLimits bounds the runs of a plan.
type EngineLimits struct {
	ISL         int // longest prompt
	Concurrency int // most requests in flight
	KVTokens    int // size of the KV cache of all engines in tokens; 0 is unknown
}

const (
	shortISL  = 64
	fewTokens = 4   // OSL of runs about prompts
	someOSL   = 32  // OSL of runs about prompts among others that decode
	decodeOSL = 128 // OSL of runs about decoding
	reuse     = 3   // requests per request in flight
)

func engineRun(name, shows string, isl, osl, concurrency, requests int, spread float64) EngineRun {
	return EngineRun{name, isl, osl, concurrency, requests, spread, shows}
}

// Rows returns the requests of the run, the same at each call.
func (r EngineRun) Rows() trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		next := uint64(1)
		start := stats.NewStream(0, r.Name).Float64()
		for i := range r.Requests {
			// Multiples of the golden ratio are evenly spread, in an order without pattern.
			_, at := math.Modf(start + float64(i)*math.Phi)
			lengthen := func(n int, at float64) int { return max(1, int(math.Round(float64(n)*(1+r.Spread*(2*at-1))))) }
			_, other := math.Modf(at + 0.5)
			row := trace.Request{Timestamp: trace.Some(0.0), InputLength: lengthen(r.ISL, at), OutputLength: lengthen(r.OSL, other)}
			for range (row.InputLength + engineRunBlock - 1) / engineRunBlock {
				row.HashIDs = append(row.HashIDs, next)
				next++
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// engineRunBlock is the block size of the runs' traces in tokens.
const engineRunBlock = 512

// Check returns an error if runs within the limits cannot identify the costs.
func (l EngineLimits) Check() error {
	if l.ISL < 4*shortISL || l.Concurrency < 4 {
		return fmt.Errorf("planning runs: prompts of %d tokens and %d requests in flight are too few: at least %d and 4", l.ISL, l.Concurrency, 4*shortISL)
	}
	return nil
}

// PlanEngineRuns plans the runs that identify the costs of an engine: single requests
// of three prompt lengths for the cost of prompts and the latency, a sweep of long
// answers for the decode table, prompts among decoding requests, two context lengths at
// a high batch, a saturated run of long prompts, and a load like those to predict.
func PlanEngineRuns(l EngineLimits) ([]EngineRun, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	middle := geometricMean(shortISL, l.ISL)
	longer := geometricMean(middle, l.ISL)
	runs := []EngineRun{
		engineRun("prompt-long", "prefill cost", l.ISL, fewTokens, 1, 4, 0),
		engineRun("prompt-middle", "prefill cost", middle, fewTokens, 1, 6, 0),
		engineRun("prompt-short", "request latency", shortISL, fewTokens, 1, 6, 0),
	}
	most := l.inFlight(l.Concurrency, shortISL+decodeOSL)
	levels := slices.DeleteFunc([]int{1, 2, 8, 32}, func(n int) bool { return n >= most })
	for _, n := range append(levels, most) { // requests of equal lengths would end and begin together
		runs = append(runs, engineRun(fmt.Sprintf("decode-%d", n), "decode time of a batch", shortISL, decodeOSL, n, max(reuse*n, 4), 0.3))
	}
	// Prompts of different lengths arrive while other requests decode: the cost of their
	// steps beyond the prompts raises TPOT, unlike the request latency.
	few, some := min(8, most), l.inFlight(min(16, most), 2*(longer+someOSL))
	context := l.inFlight(min(32, most), l.ISL+decodeOSL)
	crowd, typical := min(context, 16), l.inFlight(max(2, geometricMean(1, most)), 2*(middle+decodeOSL))
	return append(runs,
		engineRun(fmt.Sprintf("mixed-%d", few), "cost of steps with prompts", middle, someOSL, few, 8*few, 0.5),
		engineRun(fmt.Sprintf("mixed-long-%d", some), "cost of steps with prompts", longer, someOSL, some, 4*some, 0.5),
		engineRun(fmt.Sprintf("context-%d", context), "context cost", l.ISL, decodeOSL, context, reuse*context, 0),
		engineRun(fmt.Sprintf("prompts-%d", crowd), "saturated prefill", l.ISL, fewTokens, crowd, reuse*crowd, 0),
		engineRun("all-together", "a load like those to predict", middle, decodeOSL, typical, max(reuse*typical, 10), 0.5)), nil
}

// inFlight returns how many requests of some length the KV cache holds, at most n.
func (l EngineLimits) inFlight(n, tokens int) int {
	if l.KVTokens > 0 {
		n = min(n, l.KVTokens*9/10/tokens)
	}
	return max(n, 1)
}

func geometricMean(a, b int) int { return int(math.Sqrt(float64(a) * float64(b))) }

// MeasureEngines measures the engine of the base's endpoint with runs of a plan, in the folder
// of a set. A run that is INVALID is repeated once.
func MeasureEngines(ctx context.Context, s Set, runs []EngineRun) ([]Trial, error) {
	byName := map[string]EngineRun{}
	for _, r := range runs {
		byName[r.Name] = r
		p := Point{Name: r.Name}
		for _, v := range []runfile.Value{{Setting: "max-concurrency", Text: strconv.Itoa(r.Concurrency)}, {Setting: "limit", Text: strconv.Itoa(r.Requests)}} {
			p = p.With(v)
		}
		s.Points = append(s.Points, p)
	}
	s.RepeatInvalid = true
	s.Base.Trace.BlockSize = engineRunBlock
	s.Draw = func(p Point) trace.Requests { return byName[p.Name].Rows() }
	return s.Run(ctx)
}
