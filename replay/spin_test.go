package replay

import (
	"testing"
	"time"
)

// spin waits only for the time that the timer may be early. It does not wait after
// a wake-up for another instant.
func TestSpinIsBounded(t *testing.T) {
	r := &run{start: time.Now()}
	r.spin(time.Since(r.start) + time.Hour) // returns
	until := time.Since(r.start) + early/2
	r.spin(until)
	if now := time.Since(r.start); now < until {
		t.Errorf("it stops %v before the time", until-now)
	}
}

// No request is sent early when the timer fires early.
func TestPreciseRunsSendNothingEarly(t *testing.T) {
	server, m := &fakeServer{took: always(0)}, &memory{}
	var arrivals []float64
	for i := range 200 {
		arrivals = append(arrivals, 0.3*float64(i))
	}
	mustRun(t, &Runner{Client: server, Recorder: m, Precise: true}, atMS(arrivals...))
	for row, at := range arrivals {
		rec := m.records[row]
		if want := Milliseconds(at); rec.Due != want || rec.Ready != want || rec.Sent.Value < want {
			t.Fatalf("row %d: due %v, ready %v, sent %v, want %v", row, rec.Due, rec.Ready, rec.Sent.Value, want)
		}
	}
}
