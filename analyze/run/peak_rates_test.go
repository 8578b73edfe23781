package run_test

import (
	"testing"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/trace"
)

// Peaks are what the client had to do in any second: a chunk is one event,
// however many tokens are in it, and a request that failed was sent, too.
func TestPeaksOfEventsAndSends(t *testing.T) {
	var records []replay.Record
	for _, sent := range []float64{0, 1500, 1700, 2100} {
		rec := answered(sent, sent+10, sent+30)
		rec.OutputLength, rec.Counts.Output = 10, trace.Some(10)
		records = append(records, rec)
	}
	records[2].Class = replay.Truncated
	if r := compute(t, run.Options{}, records...); r.PeakEventRate != 4 || r.PeakOutputRate != 20 || r.PeakSendRate != 3 {
		t.Errorf("%v events, %v tokens, %v requests a second", r.PeakEventRate, r.PeakOutputRate, r.PeakSendRate)
	}
}
