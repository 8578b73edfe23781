package experiment

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"moontide/replay"
	"moontide/replay/monotonic"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/server"
	"moontide/trace"
)

func TestWrittenAt(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]int64{
		`{"choices":[],"written_ns":123456789012345678}`: 123456789012345678, `{"written_ns":0}`: 0,
		`{"written_ns":}`: -1, `{"other_ns":12}`: -1, `{"written_ns":12`: -1, `12}`: -1, ``: -1,
	} {
		if ns, ok := writtenAt([]byte(event)); ok != (want >= 0) || ok && ns != want {
			t.Errorf("%s: %d, %v", event, ns, ok)
		}
	}
}

// TestCompare checks the point computed from records and server stamps.
func TestCompare(t *testing.T) {
	t.Parallel()
	load := Load{Kind: Streams, Requests: 5, OSL: 4}
	truth := newTruth(load)
	start := time.Now()
	zero := monotonic.At(start)
	if zero == 0 {
		t.Skip("no clock that processes share")
	}
	var records []replay.Record
	const msec = time.Millisecond
	for row := range 5 {
		first := time.Duration(row) * msec
		for k := range 4 {
			truth.written[row] = append(truth.written[row], zero+int64(first)+int64(k)*int64(10*msec))
		}
		records = append(records, replay.Record{
			Row: row, Ready: first - 3*msec, Sent: trace.Some(first - 2*msec), First: trace.Some(first + 5*time.Microsecond),
			Gaps: []time.Duration{10 * msec, 11 * msec, 9 * msec}, Stamps: replay.KernelStamps,
		})
	}
	records[3].Class = replay.Truncated
	truth.written[4] = truth.written[4][:3]
	p := LoadResult{Load: load}
	truth.compare(records, start, &p)
	want := LoadResult{
		Load: load, Lost: 2, EventRate: 300, SentRate: 1000,
		TTFT:      Spread{Count: 3, MedianMS: 0.005, P99MS: 0.005, MaxMS: 0.005},
		ITL:       Spread{Count: 9, MedianMS: 1, P99MS: 1, MaxMS: 1},
		ClientLag: Spread{Count: 5, MedianMS: 1, P99MS: 1, MaxMS: 1},
		stamps:    replay.KernelStamps,
	}
	// The clocks are compared again each time, to within some hundred
	// nanoseconds.
	about := cmpopts.EquateApprox(0, 0.002)
	if diff := cmp.Diff(want, p, cmp.AllowUnexported(LoadResult{}), about); diff != "" {
		t.Error(diff)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	fine := LoadResult{
		Load: StreamLoad(100, 50, time.Second, true), Streams: 100, EventRate: 4900,
		TTFT: Spread{P99MS: 1}, ITL: Spread{P99MS: 1}, ClientLag: Spread{P99MS: 30},
	}
	requests := LoadResult{Load: SendLoad(100, 16, time.Second), TTFT: Spread{P99MS: 1}, ITL: Spread{P99MS: 1}, ClientLag: Spread{P99MS: 1}}
	for _, tt := range []struct {
		name string
		of   LoadResult
		do   func(p *LoadResult)
		want string
	}{
		{"fine", fine, func(*LoadResult) {}, ""},
		{"fine requests", requests, func(*LoadResult) {}, ""},
		{"lost", fine, func(p *LoadResult) { p.Lost = 2 }, "2 requests were lost"},
		{"not at once", fine, func(p *LoadResult) { p.Streams = 99 }, "only 99 streams were in flight at once"},
		{"slow endpoint", fine, func(p *LoadResult) { p.EventRate = 4700 }, "the endpoint wrote 4700 events/s of 5000"},
		{"TTFT", fine, func(p *LoadResult) { p.TTFT.P99MS = 1.5 }, "TTFT error p99 1.500 ms"},
		{"ITL", fine, func(p *LoadResult) { p.ITL.P99MS = 1.5 }, "ITL error p99 1.500 ms"},
		{"late", requests, func(p *LoadResult) { p.ClientLag.P99MS = 1.5 }, "client lag p99 1.500 ms"},
	} {
		p := tt.of
		tt.do(&p)
		if got := judge(p); got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// Streams are in range only if both phases are; each number is judged
// separately.
func TestRangeOf(t *testing.T) {
	t.Parallel()
	at := func(n int, rate float64, lockStep bool, tooMuch string) LoadResult {
		return LoadResult{Load: StreamLoad(n, rate, time.Second, lockStep), Streams: n, EventRate: float64(n) * rate, TooMuch: tooMuch}
	}
	sent := func(rate float64, tooMuch string) LoadResult {
		return LoadResult{Load: SendLoad(rate, 16, time.Second), Streams: 1e6, EventRate: 1e6, SentRate: rate, TooMuch: tooMuch}
	}
	for _, tt := range []struct {
		name   string
		points []LoadResult
		want   runfile.Range
	}{
		{"nothing", nil, runfile.Range{}},
		{"one way", []LoadResult{at(100, 50, true, "")}, runfile.Range{}},
		{"other way too much", []LoadResult{at(100, 50, true, ""), at(100, 50, false, "x")}, runfile.Range{}},
		{"other shape", []LoadResult{at(100, 50, true, ""), at(100, 40, false, "")}, runfile.Range{}},
		{"both ways", []LoadResult{
			at(100, 50, true, ""), at(100, 50, false, ""), at(1000, 1, true, ""), at(1000, 1, false, ""), at(9999, 50, true, ""),
		}, runfile.Range{Streams: 1000, EventsPerSecond: 5000}},
		{"requests", []LoadResult{sent(250, ""), sent(1000, ""), sent(2000, "x")}, runfile.Range{RequestsPerSecond: 1000}},
	} {
		if diff := cmp.Diff(tt.want, rangeOf(tt.points)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// The loads finish in the stated time, and all their streams are in flight for a while.
func TestLoads(t *testing.T) {
	t.Parallel()
	var sum time.Duration
	for _, load := range Loads() {
		ramp := time.Duration(float64(load.Requests) / load.RequestRate * float64(time.Second))
		lasts := before + ramp + time.Duration(float64(load.OSL)/load.TokenRate*float64(time.Second))
		if sum += lasts; load.Kind == Streams && lasts < 2*ramp+hold {
			t.Errorf("%v lasts %v, and begins in %v", load, lasts, ramp)
		}
	}
	if sum > 40*time.Second {
		t.Errorf("they take %v", sum)
	}
}

// A saved calibration counts on a machine with the same CPU model and number of cores.
func TestCalibrated(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "calibration.json")
	if c := calibrated(path); c != nil {
		t.Errorf("without a file: %+v", c)
	}
	want := runfile.Calibrated{Taken: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC), Range: runfile.Range{Streams: 3, EventsPerSecond: 4.5, RequestsPerSecond: 6}}
	for _, test := range []struct {
		change func(*Machine)
		counts bool
	}{
		{func(*Machine) {}, true},
		{func(m *Machine) { m.Go = "go1.27" }, true},
		{func(m *Machine) { m.CPU += "b" }, false},
		{func(m *Machine) { m.CPUs++ }, false},
		{func(m *Machine) { m.Arch += "b" }, false},
	} {
		m := ThisMachine()
		test.change(&m)
		if err := (&Calibration{Machine: m, Taken: want.Taken, Range: want.Range}).Save(path); err != nil {
			t.Fatal(err)
		}
		if c := calibrated(path); (c != nil) != test.counts || c != nil && *c != want {
			t.Errorf("%+v: %+v", m, c)
		}
	}
	writeFile(t, path, "{")
	if c := calibrated(path); c != nil {
		t.Errorf("half a file: %+v", c)
	}
}

// A calibration drives its loads one after another, against an endpoint whose writes it
// compares, and one without any load in range fails.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	if checkSystem() != nil {
		t.Skip("no clock that processes share")
	}
	loads := []Load{StreamLoad(20, 50, 50*time.Millisecond, false), StreamLoad(20, 50, 50*time.Millisecond, true), SendLoad(100, calibrationISL, 100*time.Millisecond)}
	for i := range loads {
		loads[i].OSL = 10
	}
	start := func(_ context.Context, p Pace) (Endpoint, error) {
		d := engine.Default()
		d.Engine.Costs = engine.Costs{Step: engine.CostOf(p.TPOT)}
		url, end, err := embed(server.Config{Model: "m", Deployment: d})
		return Endpoint{URL: url, Close: func() error { end(); return nil }}, err
	}
	c, err := Calibrate(t.Context(), CalibrateConfig{Start: start, Loads: loads})
	if c == nil { // on a busy machine
		if !strings.Contains(err.Error(), "no load has p99 errors below 1ms") {
			t.Fatal(err)
		}
		return
	}
	if len(c.Points) != len(loads) || c.Range == (runfile.Range{}) {
		t.Errorf("%+v", c)
	}
	for _, p := range c.Points {
		if p.Lost != 0 || p.TTFT.Count != p.Requests || p.ITL.Count != p.Requests*(p.OSL-1) || p.ClientLag.Count != p.Requests {
			t.Errorf("%+v", p)
		}
		if p.Kind == Streams && (p.Streams != p.Requests || p.EventRate <= 0) {
			t.Errorf("%v: %d streams, %v events/s", p.Load, p.Streams, p.EventRate)
		}
	}
	loads[0].ISL = 200_000 // is refused: all are lost
	if c, err := Calibrate(t.Context(), CalibrateConfig{Start: start, Loads: loads[:1]}); err == nil {
		t.Errorf("a calibration without a load in range: %+v", c.Points)
	}
}
