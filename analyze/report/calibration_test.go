package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/trace/tracetest"
)

// calibration is of a machine whose CPU has a hostile name.
func calibration() *bench.Calibration {
	errors := func(x float64) bench.Spread {
		return bench.Spread{Count: 100, MedianMS: x, P99MS: 10 * x, MaxMS: 100 * x}
	}
	many := bench.Load{Kind: bench.Streams, Requests: 10_800, RequestRate: 5400, ISL: 16, OSL: 34, TokenRate: 6.13}
	lockStep := many
	lockStep.LockStep = true
	return &bench.Calibration{
		Version: "v1", Taken: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC),
		Machine: bench.Machine{CPU: "Some\x1b[2J\nCPU", Host: runfile.Host{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26"}},
		Stamps:  replay.KernelStamps, LimitMS: 1,
		Range: runfile.Range{Streams: 10_800, EventsPerSecond: 66_204.2, RequestsPerSecond: 1000.4},
		Points: []bench.Point{
			{
				Load: many, Streams: 10_800, EventRate: 66_204.2, SentRate: 5400, TTFT: errors(0.001), ITL: errors(0.002), ClientLag: errors(0.03),
				Client: bench.Work{Cores: 0.27, PerEvent: 4.14, MemoryMB: 179.3}, Server: bench.Work{Cores: 0.43, PerEvent: 6.52, MemoryMB: 190}, Others: 0.01,
			},
			{Load: lockStep, Lost: 3, TooMuch: "3 requests were lost"},
			{Load: bench.Load{Kind: bench.Sends, RequestRate: 100, ISL: 110_000}, ClientLag: errors(0.04)},
		},
	}
}

func TestCalibrationText(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := report.Calibration(calibration()).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b\r") {
		t.Error("a control character gets through")
	}
	tracetest.Golden(t, "testdata/calibration.txt", text.String())
	if err := report.Calibration(&bench.Calibration{}).WriteText(new(bytes.Buffer)); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}

// The JSON contains the calibration.
func TestCalibrationJSON(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := report.CalibrationJSON(&text, calibration()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Stamps string
		Range  struct {
			Streams int
			Events  float64 `json:"events_per_s"`
		}
		Machine struct{ CPUs int }
		Loads   []struct {
			LockStep bool `json:"lock_step"`
			ITL      struct {
				P99 float64 `json:"p99_ms"`
			} `json:"itl_error"`
			Client struct {
				PerEvent float64 `json:"cpu_us_per_event"`
			}
			TooMuch string `json:"too_much"`
		}
	}
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Stamps != "kernel" || got.Range.Streams != 10_800 || got.Range.Events != 66_204.2 || got.Machine.CPUs != 2 || len(got.Loads) != 3 {
		t.Errorf("%+v", got)
	}
	if l := got.Loads[0]; l.ITL.P99 != 0.02 || l.Client.PerEvent != 4.14 || l.LockStep || l.TooMuch != "" {
		t.Errorf("%+v", l)
	}
	if l := got.Loads[1]; !l.LockStep || l.TooMuch != "3 requests were lost" {
		t.Errorf("%+v", l)
	}
}

func TestCalibrationLine(t *testing.T) {
	t.Parallel()
	points := calibration().Points
	for i, want := range []string{
		"10800 streams of 6.13 tokens/s evenly phased: errors at p99: TTFT 0.010 ms, ITL 0.020 ms; client lag at p99: 0.300 ms",
		"10800 streams of 6.13 tokens/s in lock-step: errors at p99: TTFT 0.000 ms, ITL 0.000 ms; client lag at p99: 0.000 ms; too much: 3 requests were lost",
	} {
		if got := report.CalibrationLine(points[i]); got != want {
			t.Errorf("%s", got)
		}
	}
}

// A run reports its position in its client's calibrated range, except in
// virtual time.
func TestCalibratedRun(t *testing.T) {
	t.Parallel()
	line := func(info runfile.Run, r run.Result) string {
		var text bytes.Buffer
		if err := servingTo(&text, info, &r); err != nil {
			t.Fatal(err)
		}
		_, line, found := strings.Cut(text.String(), "Calibrated: ")
		if !found {
			return ""
		}
		line, _, _ = strings.Cut(line, "\n\n")
		return "Calibrated: " + strings.Join(strings.Fields(line), " ") + "\n"
	}
	calibrated := &runfile.Calibrated{
		Taken: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC),
		Range: runfile.Range{Streams: 10_800, EventsPerSecond: 66_204.2, RequestsPerSecond: 1000},
	}
	inside := run.Result{PeakConcurrency: 1080, PeakEventRate: 66_204, PeakSendRate: 1000}
	const seen = " the range that was calibrated on this machine on 2026-11-21: peak of "
	for _, tt := range []struct {
		name   string
		info   runfile.Run
		result run.Result
		want   string
	}{
		{"not calibrated", runfile.Run{}, inside, ""},
		{"virtual", runfile.Run{Calibrated: calibrated, Target: runfile.Target{Virtual: true}}, inside, ""},
		{"inside", runfile.Run{Calibrated: calibrated}, inside,
			"Calibrated: inside" + seen + "1,080 streams of 10,800 (10 %), 66,204 events/s of 66,204 (100 %), 1,000 requests/s of 1,000 (100 %).\n"},
		{"too many streams", runfile.Run{Calibrated: calibrated}, run.Result{PeakConcurrency: 21_600},
			"Calibrated: OUTSIDE" + seen + "21,600 streams of 10,800 (200 %), 0 events/s of 66,204 (0 %), 0 requests/s of 1,000 (0 %).\n"},
		{"too many requests", runfile.Run{Calibrated: &runfile.Calibrated{Taken: calibrated.Taken}}, run.Result{PeakSendRate: 1},
			"Calibrated: OUTSIDE" + seen + "0 streams of 0, 0 events/s of 0, 1 requests/s of 0.\n"},
	} {
		if got := line(tt.info, tt.result); got != tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}
