package report_test

import (
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/trace/tracetest"
)

// calibration is of a machine whose CPU has a hostile name.
func calibration() *experiment.Calibration {
	errors := func(x float64) experiment.Spread {
		return experiment.Spread{Count: 100, MedianMS: x, P99MS: 10 * x, MaxMS: 100 * x}
	}
	many := experiment.Load{Kind: experiment.Streams, Requests: 10_800, RequestRate: 5400, ISL: 16, OSL: 34, TokenRate: 6.13}
	lockStep := many
	lockStep.LockStep = true
	return &experiment.Calibration{
		Version: "v1", Taken: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC),
		Machine: experiment.Machine{CPU: "Some\x1b[2J\nCPU", Host: runfile.Host{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26"}},
		Stamps:  replay.KernelStamps, LimitMS: 1,
		Range: runfile.Range{Streams: 10_800, EventsPerSecond: 66_204.2, RequestsPerSecond: 1000.4},
		Points: []experiment.LoadResult{
			{
				Load: many, Streams: 10_800, EventRate: 66_204.2, SentRate: 5400, TTFT: errors(0.001), ITL: errors(0.002), ClientLag: errors(0.03),
			},
			{Load: lockStep, Lost: 3, TooMuch: "3 requests were lost"},
			{Load: experiment.Load{Kind: experiment.Sends, RequestRate: 100, ISL: 110_000}, ClientLag: errors(0.04)},
		},
	}
}

func TestCalibrationText(t *testing.T) {
	t.Parallel()
	tracetest.Golden(t, "testdata/calibration.txt", written(t, report.Calibration(calibration()).WriteText))
	written(t, report.Calibration(&experiment.Calibration{}).WriteText) // of nothing
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

// A run reports what exceeded its client's calibrated range, except in virtual time.
func TestCalibratedRun(t *testing.T) {
	t.Parallel()
	calibrated := &runfile.Calibrated{
		Taken: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC),
		Range: runfile.Range{Streams: 10_800, EventsPerSecond: 66_204.2, RequestsPerSecond: 1000},
	}
	inside := measure.Result{PeakConcurrency: 1080, PeakEventRate: 66_204, PeakSendRate: 1000}
	const exceeds = "Calibrated: the load exceeds what was calibrated on this machine on 2026-11-21: peak of "
	for _, tt := range []struct {
		name   string
		info   runfile.Run
		result measure.Result
		want   string
	}{
		{"not calibrated", runfile.Run{}, inside, ""},
		{"virtual", runfile.Run{Settings: settings.Settings{Virtual: true}, Outcome: runfile.Outcome{Calibrated: calibrated}}, inside, ""},
		{"inside", runfile.Run{Outcome: runfile.Outcome{Calibrated: calibrated}}, inside, ""},
		{"too many streams", runfile.Run{Outcome: runfile.Outcome{Calibrated: calibrated}}, measure.Result{PeakConcurrency: 21_600}, exceeds + "21,600 streams of 10,800."},
		{"too many requests", runfile.Run{Outcome: runfile.Outcome{Calibrated: &runfile.Calibrated{Taken: calibrated.Taken}}}, measure.Result{PeakSendRate: 1}, exceeds + "1 requests/s of 0."},
	} {
		text := strings.Join(strings.Fields(written(t, report.Runs{{Info: tt.info, Result: &tt.result}}.Document().WriteText)), " ")
		if !strings.Contains(text, tt.want) || tt.want == "" && strings.Contains(text, "Calibrated: ") {
			t.Errorf("%s: %s", tt.name, text)
		}
	}
}
