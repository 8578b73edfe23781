package bench

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/replay/sim/fit"
	"moontide/trace/stats"
)

// EngineMeasurement is a recorded run as a measurement of the engines that served it.
type EngineMeasurement struct {
	fit.Measurement
	SHA256 string // of the record
	Model  string
	Server string // such as vllm, "" if unknown
	// BlockSize and KVTokens are the block size and the size of the KV caches of all
	// engines in tokens, by the server's metrics; 0 is unknown.
	BlockSize, KVTokens int
	// Running is the most sequences that ran at once, by the server's metrics. Capped
	// is set if others waited for them while the KV caches had room: if no run had
	// more, it is the limit of the server.
	Running int
	Capped  bool
	// Unfit is why the run must not be fitted, "" if it may be. Invalid is set if its
	// verdict is the reason.
	Unfit   string
	Invalid bool
}

// ReadEngineRun reads the run in a folder. A closed loop becomes the rows in order with
// the limit of requests in flight, any other run its requests at the times at which they
// were sent. Cached prompt tokens are those that the server reported.
func ReadEngineRun(dir string) (*EngineMeasurement, error) {
	whole := func(info *runfile.Run) { info.Window = runfile.Window{} } // as the load is
	measured, err := Measure(MeasureConfig{Change: whole}, dir)
	if err != nil {
		return nil, err
	}
	m := &EngineMeasurement{Model: measured.Run.Target.Model}
	m.Name = filepath.Base(filepath.Clean(dir))
	if m.SHA256, err = digestPath(filepath.Join(dir, runfile.RequestsFile)); err != nil {
		return nil, err
	}
	for _, metric := range fit.Metrics() {
		m.Values[metric] = run.MustMetric(metric.String()).Value(measured.Metrics).Value
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
	warm := r.Metrics.Cache.Prediction.Causes[run.Warm]
	switch {
	case !r.Run.Finished():
		m.Unfit = "the run is not complete"
	case r.Metrics.Completed == 0:
		m.Unfit = "no request succeeded"
	case v.Level == run.Invalid:
		m.Unfit, m.Invalid = "the run is INVALID: "+v.Reasons()[0], true
	case warm.Requests > 0:
		m.Unfit = fmt.Sprintf("warm cache: %d requests found %d tokens that no request of the run can have cached", warm.Requests, warm.Tokens)
	}
}

// readServer reads the server's metrics.
func (m *EngineMeasurement) readServer(dir string) error {
	var waited []int // sequences that ran while others waited
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
		if s.Server.Running == nil || s.Server.Waiting == nil || s.Server.KVUseMax == nil {
			continue
		}
		running := int(*s.Server.Running)
		m.Running = max(m.Running, running)
		if *s.Server.Waiting > 0 && *s.Server.KVUseMax < fullKV {
			waited = append(waited, running)
		}
	}
	m.Capped = capped(waited, m.Running)
	return nil
}

// fullKV is the use from which a KV cache may be what requests wait for.
const fullKV = 0.9

// capped reports whether requests waited because so many were running. They may also
// wait for the tokens of a step, but then the number that runs varies.
func capped(waited []int, running int) bool {
	const least, share = 3, 0.75
	equal := 0
	for _, n := range waited {
		if n == running {
			equal++
		}
	}
	return equal >= least && float64(equal) >= share*float64(len(waited))
}

// readLoad reads the requests of the run.
func (m *EngineMeasurement) readLoad(dir string, info runfile.Run) error {
	r, err := OpenRecording(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	loop := info.Limits.Closed && info.Limits.MaxConcurrency > 0 && info.Limits.MaxSessions == 0
	if loop {
		m.Load.Concurrency = info.Limits.MaxConcurrency
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
	m.Load.ISL, m.Load.OSL = int(input.Sample().Mean), int(output.Sample().Mean)
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
