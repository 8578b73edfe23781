package bench

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/replay/monotonic"
	"moontide/replay/runfile"
	"moontide/trace"
)

// A constant delay shows up in the TTFT error only. Additional lateness of a
// token shows up in the gap before it and, with the opposite sign, in the gap
// after it.
func TestErrorsOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Int64Range(0, 1e9)
		written := []int64{rapid.Int64Range(0, 1e15).Draw(t, "start")}
		for _, gap := range rapid.SliceOfN(duration, 0, 20).Draw(t, "gaps") {
			written = append(written, written[len(written)-1]+gap)
		}
		off := duration.Draw(t, "off")
		late := make([]int64, len(written))
		odd := rapid.IntRange(0, len(written)-1).Draw(t, "odd")
		late[odd] = duration.Draw(t, "late")
		var gaps []time.Duration
		for i := 1; i < len(written); i++ {
			gaps = append(gaps, time.Duration(written[i]+late[i]-written[i-1]-late[i-1]))
		}
		ttft, itl, ok := errorsOf(written[0]+off+late[0], gaps, written)
		if !ok || ttft != time.Duration(off+late[0]) {
			t.Fatalf("the error of the TTFT is %v, %v", ttft, ok)
		}
		for i, e := range itl {
			if want := time.Duration(late[i+1] - late[i]); e != want {
				t.Fatalf("the error of gap %d is %v, not %v", i, e, want)
			}
		}
		if _, _, ok := errorsOf(0, gaps, written[1:]); ok {
			t.Fatal("a token that the endpoint did not tell of is not missed")
		}
	})
}

func TestWrittenAt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		event string
		ns    int64
		ok    bool
	}{
		{`{"choices":[],"written_ns":1234567890123456789}`, 0, false}, // in 300 years
		{`{"choices":[],"written_ns":123456789012345678}`, 123456789012345678, true},
		{`{"written_ns":0}`, 0, true},
		{`{"written_ns":}`, 0, false},
		{`{"other_ns":12}`, 0, false},
		{`{"written_ns":12`, 0, false},
		{`12}`, 0, false},
		{`}`, 0, false},
		{``, 0, false},
	} {
		if ns, ok := writtenAt([]byte(tt.event)); ns != tt.ns || ok != tt.ok {
			t.Errorf("%s: %d, %v", tt.event, ns, ok)
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
	p := Point{Load: load}
	truth.compare(records, start, &p)
	want := Point{
		Load: load, Lost: 2, EventRate: 300, SentRate: 1000,
		TTFT:      Spread{Count: 3, MedianMS: 0.005, P99MS: 0.005, MaxMS: 0.005},
		ITL:       Spread{Count: 9, MedianMS: 1, P99MS: 1, MaxMS: 1},
		ClientLag: Spread{Count: 5, MedianMS: 1, P99MS: 1, MaxMS: 1},
		stamps:    replay.KernelStamps,
	}
	// The clocks are compared again each time, to within some hundred
	// nanoseconds.
	about := cmpopts.EquateApprox(0, 0.002)
	if diff := cmp.Diff(want, p, cmp.AllowUnexported(Point{}), about); diff != "" {
		t.Error(diff)
	}
}

func TestTokenRate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		gaps []time.Duration
		want float64
	}{
		{nil, 0},
		{[]time.Duration{time.Second}, 0},
		{[]time.Duration{time.Second, 10 * time.Millisecond, 30 * time.Millisecond}, 50},
		{[]time.Duration{time.Second, 0, 0}, 0},
	} {
		if got := tokenRate(tt.gaps); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%v: %v", tt.gaps, got)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	fine := Point{
		Load: streams(100, 50, time.Second, true), Streams: 100, EventRate: 4900,
		TTFT: Spread{P99MS: 1}, ITL: Spread{P99MS: 1}, ClientLag: Spread{P99MS: 30},
	}
	requests := Point{Load: sends(100, 16, time.Second), TTFT: Spread{P99MS: 1}, ITL: Spread{P99MS: 1}, ClientLag: Spread{P99MS: 1}}
	for _, tt := range []struct {
		name string
		of   Point
		do   func(p *Point)
		want string
	}{
		{"fine", fine, func(*Point) {}, ""},
		{"fine requests", requests, func(*Point) {}, ""},
		{"lost", fine, func(p *Point) { p.Lost = 2 }, "2 requests were lost"},
		{"not at once", fine, func(p *Point) { p.Streams = 99 }, "only 99 streams were in flight at once"},
		{"slow endpoint", fine, func(p *Point) { p.EventRate = 4700 }, "the endpoint wrote 4700 events/s of 5000"},
		{"TTFT", fine, func(p *Point) { p.TTFT.P99MS = 1.5 }, "TTFT error p99 1.500 ms"},
		{"ITL", fine, func(p *Point) { p.ITL.P99MS = 1.5 }, "ITL error p99 1.500 ms"},
		{"late", requests, func(p *Point) { p.ClientLag.P99MS = 1.5 }, "client lag p99 1.500 ms"},
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
	at := func(n int, rate float64, lockStep bool, tooMuch string) Point {
		return Point{Load: streams(n, rate, time.Second, lockStep), Streams: n, EventRate: float64(n) * rate, TooMuch: tooMuch}
	}
	sent := func(rate float64, tooMuch string) Point {
		return Point{Load: sends(rate, 16, time.Second), Streams: 1e6, EventRate: 1e6, SentRate: rate, TooMuch: tooMuch}
	}
	for _, tt := range []struct {
		name   string
		points []Point
		want   runfile.Range
	}{
		{"nothing", nil, runfile.Range{}},
		{"one way", []Point{at(100, 50, true, "")}, runfile.Range{}},
		{"other way too much", []Point{at(100, 50, true, ""), at(100, 50, false, "x")}, runfile.Range{}},
		{"other shape", []Point{at(100, 50, true, ""), at(100, 40, false, "")}, runfile.Range{}},
		{"both ways", []Point{
			at(100, 50, true, ""), at(100, 50, false, ""), at(1000, 1, true, ""), at(1000, 1, false, ""), at(9999, 50, true, ""),
		}, runfile.Range{Streams: 1000, EventsPerSecond: 5000}},
		{"requests", []Point{sent(250, ""), sent(1000, ""), sent(2000, "x")}, runfile.Range{RequestsPerSecond: 1000}},
	} {
		if diff := cmp.Diff(tt.want, rangeOf(tt.points)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// A ladder ends at the first load that is too much, which is repeated if other
// processes kept the machine busy.
func TestClimb(t *testing.T) {
	t.Parallel()
	ladder := Ladder{{Requests: 1}, {Requests: 2}, {Requests: 3}, {Requests: 4}}
	times := map[int]int{}
	always := func(Load) bool { return true }
	points, err := climb(ladder, always, func(l Load) (Point, error) {
		times[l.Requests]++
		p := Point{Load: l, Streams: times[l.Requests]}
		if l.Requests == 3 || l.Requests == 2 && times[2] == 1 {
			p.TooMuch, p.Others = "x", 0.5
		}
		return p, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Point{{Load: ladder[0], Streams: 1}, {Load: ladder[1], Streams: 2}, {Load: ladder[2], Streams: 2, TooMuch: "x", Others: 0.5}}
	if diff := cmp.Diff(want, points, cmpopts.IgnoreUnexported(Point{})); diff != "" {
		t.Error(diff)
	}
	clear(times)
	points, err = climb(ladder, always, func(l Load) (Point, error) {
		times[l.Requests]++
		return Point{Load: l, TooMuch: "x", Others: 0.05}, nil
	})
	if err != nil || len(points) != 1 || times[1] != 1 {
		t.Errorf("on a quiet machine: %v, %v, driven %v times", points, err, times)
	}
	clear(times)
	points, err = climb(ladder, func(l Load) bool { return l.Requests != 1 }, func(l Load) (Point, error) {
		times[l.Requests]++
		return Point{Load: l, TooMuch: "x", Others: 0.5}, nil
	})
	if err != nil || len(points) != 1 || times[1] != 1 {
		t.Errorf("without time to repeat: %v, %v, driven %v times", points, err, times)
	}
	failure := errors.New("no endpoint")
	if _, err := climb(ladder, always, func(Load) (Point, error) { return Point{}, failure }); err != failure {
		t.Error(err)
	}
}

// The remaining ladders must fit after a repeated load.
func TestMayRepeat(t *testing.T) {
	t.Parallel()
	load := Load{Requests: 100, RequestRate: 100, OSL: 100, TokenRate: 50} // 3 s and before
	each := load.lasts() + around
	left := longest - 3*each
	behind := []Ladder{{load}, {load}}
	if !mayRepeat(load, behind, left) || mayRepeat(load, behind, left+1) || mayRepeat(load, append(behind, Ladder{load}), left) {
		t.Error("a load is repeated where there is no time, or not where there is")
	}
}

// Loads that need more open files than the limit are omitted.
func TestWithin(t *testing.T) {
	t.Parallel()
	ladder := Ladder{{Requests: 10}, {Requests: 1000}}
	for _, tt := range []struct{ files, want int }{{0, 2}, {20000, 2}, {1000 + 2*otherFiles, 2}, {1000, 1}, {20, 0}} {
		if got := len(ladder.within(tt.files)); got != tt.want {
			t.Errorf("of %d files: %d loads", tt.files, got)
		}
	}
}

// Both plans grow and finish in the stated time, and all their streams are in
// flight throughout the measurement.
func TestLadders(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]struct {
		ladders []Ladder
		most    time.Duration
	}{"full": {Ladders(), 42 * time.Second}, "quick": {QuickLadders(), 8 * time.Second}} {
		var sum time.Duration
		for _, ladder := range plan.ladders {
			for i, load := range ladder {
				sum += load.lasts()
				if i > 0 && load.events() <= ladder[i-1].events() && load.Requests <= ladder[i-1].Requests {
					t.Errorf("%s: %v is no more than %v", name, load, ladder[i-1])
				}
				ramp := time.Duration(float64(load.Requests) / load.RequestRate * float64(time.Second))
				if load.Kind == Streams && load.lasts() < 2*ramp+hold {
					t.Errorf("%s: %v lasts %v, and begins in %v", name, load, load.lasts(), ramp)
				}
			}
		}
		if sum > plan.most {
			t.Errorf("%s takes %v", name, sum)
		}
	}
}

// The rows of a load arrive evenly.
func TestRows(t *testing.T) {
	t.Parallel()
	load := Load{Requests: 5, RequestRate: 250, ISL: 7, OSL: 9}
	rows, err := trace.Collect(load.rows())
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, r := range rows {
		if r.Timestamp.Value != ms(before)+float64(4*i) || r.InputLength != 7 || r.OutputLength != 9 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	if plan, err := replay.Scan(load.rows()); err != nil || plan.DurationMS != 16 {
		t.Errorf("%+v, %v", plan, err)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	if got := streams(10, 50, time.Second, true).Pace(); got != (Pace{20 * time.Millisecond, true}) {
		t.Errorf("%+v", got)
	}
}

// A saved calibration can be loaded, and saving replaces an existing file.
func TestSave(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "calibration.json")
	if _, err := LoadCalibration(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of none: %v", err)
	}
	c := &Calibration{
		Version: "v", Taken: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC), Machine: Machine{CPU: "a cpu", Host: runfile.Host{OS: "linux", CPUs: 2}},
		Stamps: replay.KernelStamps, LimitMS: 1, Range: runfile.Range{Streams: 3, EventsPerSecond: 4.5, RequestsPerSecond: 6},
		Points: []Point{{Load: streams(10, 50, time.Second, true), Lost: 1, Client: Work{Cores: 0.5}, TooMuch: "x"}},
	}
	for range 2 {
		if err := c.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := LoadCalibration(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got, cmpopts.IgnoreUnexported(Point{})); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{"half": `{"version": "v"`, "long": `"` + strings.Repeat("x", maxCalibration) + `"`} {
		path := filepath.Join(t.TempDir(), name)
		os.WriteFile(path, []byte(text), 0o600)
		if _, err := LoadCalibration(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadCalibration(t.TempDir()); err == nil {
		t.Error("a folder is read")
	}
}

// A calibration is valid for one CPU model and number of cores.
func TestFor(t *testing.T) {
	t.Parallel()
	m := Machine{CPU: "a", Host: runfile.Host{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26"}}
	c := &Calibration{Machine: m}
	for _, tt := range []struct {
		do   func(*Machine)
		want bool
	}{
		{func(*Machine) {}, true},
		{func(m *Machine) { m.Go = "go1.27" }, true},
		{func(m *Machine) { m.CPU = "b" }, false},
		{func(m *Machine) { m.CPUs = 4 }, false},
		{func(m *Machine) { m.OS = "darwin" }, false},
		{func(m *Machine) { m.Arch = "arm64" }, false},
	} {
		other := m
		if tt.do(&other); c.For(other) != tt.want {
			t.Errorf("%+v: %v", other, !tt.want)
		}
	}
}

func TestSteady(t *testing.T) {
	t.Parallel()
	many, some := Load{Kind: Streams, Requests: 3}, Load{Kind: Sends, Requests: 30}
	for _, tt := range []struct {
		load   Load
		status replay.Status
		want   bool
	}{
		{many, replay.Status{Sent: 2, InFlight: 2}, false},
		{many, replay.Status{Sent: 3, InFlight: 3}, true},
		{many, replay.Status{Sent: 3, InFlight: 2, Done: 1}, false},
		{some, replay.Status{Sent: 5, InFlight: 5}, false},
		{some, replay.Status{Sent: 5, InFlight: 4, Done: 1}, true},
		{some, replay.Status{Sent: 30, InFlight: 4, Done: 26}, false},
	} {
		if got := steady(tt.load, tt.status); got != tt.want {
			t.Errorf("%v, %+v: %v", tt.load, tt.status, got)
		}
	}
}

// An endpoint that does not start ends the calibration and leaves nothing
// running.
func TestNoEndpoint(t *testing.T) {
	t.Parallel()
	if checkSystem() != nil {
		t.Skip("no clock that processes share")
	}
	failure := errors.New("no endpoint")
	var each []Point
	_, err := Calibrate(context.Background(), CalibrateConfig{
		Start: func(context.Context, Pace) (Endpoint, error) { return Endpoint{}, failure },
		Each:  func(p Point) { each = append(each, p) },
	})
	if !errors.Is(err, failure) || len(each) > 0 || !strings.Contains(err.Error(), "100 streams of 50 tokens/s") {
		t.Errorf("%v, %v", err, each)
	}
}

func TestLoadInWords(t *testing.T) {
	t.Parallel()
	got := []string{streams(10, 6.13, time.Second, true).String(), streams(10, 50, time.Second, false).String(), sends(100, 16, time.Second).String()}
	want := []string{"10 streams of 6.13 tokens/s in lock-step", "10 streams of 50 tokens/s evenly phased", "100 requests/s of 16 tokens"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestCalibrated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	half := filepath.Join(dir, "half")
	os.WriteFile(half, []byte("{"), 0o600)
	if c, notes := calibrated(""); c != nil || notes != nil {
		t.Errorf("%v, %q", c, notes)
	}
	if c, notes := calibrated(filepath.Join(dir, "none")); c != nil || notes != nil {
		t.Errorf("%v, %q", c, notes)
	}
	if c, notes := calibrated(half); c != nil || len(notes) != 1 {
		t.Errorf("%v, %q", c, notes)
	}
}
