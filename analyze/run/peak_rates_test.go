package run_test

import (
	"testing"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/trace"
)

// Peaks are what the client had to do in any second: a chunk is one event,
// however many tokens are in it, and a request that failed was sent, too.
func TestPeaksOfEventsAndSends(t *testing.T) {
	t.Parallel()
	var records []replay.Record
	add := func(sent time.Duration, class replay.Class) {
		records = append(records, replay.Record{
			Request: trace.Request{OutputLength: 10},
			Sent:    trace.Some(sent),
			First:   trace.Some(sent + 10*time.Millisecond), Last: trace.Some(sent + 30*time.Millisecond), Done: sent + 40*time.Millisecond,
			Gaps: []time.Duration{20 * time.Millisecond}, Chunks: 2, Class: class,
			Counts: replay.Counts{Output: trace.Some(10)},
		})
	}
	add(0, replay.OK)
	add(1500*time.Millisecond, replay.OK)
	add(1700*time.Millisecond, replay.Truncated)
	add(2100*time.Millisecond, replay.OK)
	r, err := run.Compute(func(yield func(replay.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}, run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.PeakEventRate != 4 || r.PeakOutputRate != 20 || r.PeakSendRate != 3 {
		t.Errorf("%v events, %v tokens, %v requests a second", r.PeakEventRate, r.PeakOutputRate, r.PeakSendRate)
	}
}
