package replay

import (
	"testing"
	"time"

	"moontide/trace"
)

// What is spun is the moment that an alarm may be early, and no more: an alarm
// that was for another instant is not waited for.
func TestSpinIsBounded(t *testing.T) {
	r := &run{start: time.Now()}
	r.spin(time.Since(r.start) + time.Hour) // returns
	until := time.Since(r.start) + early/2
	r.spin(until)
	if now := time.Since(r.start); now < until {
		t.Errorf("it stops %v before the time", until-now)
	}
}

// Nothing leaves before its time when alarms go off early.
func TestPreciseRunsSendNothingEarly(t *testing.T) {
	server, m := &fakeServer{took: always(0)}, &memory{}
	var arrivals []float64
	for i := range 200 {
		arrivals = append(arrivals, 0.3*float64(i))
	}
	if _, err := (&Runner{Client: server, Recorder: m, Precise: true}).Run(t.Context(), trace.FromSlice(atMS(arrivals...))); err != nil {
		t.Fatal(err)
	}
	for row, at := range arrivals {
		rec := m.records[row]
		if want := Milliseconds(at); rec.Due != want || rec.Ready != want || rec.Sent.Value < want {
			t.Fatalf("row %d: due %v, ready %v, sent %v, want %v", row, rec.Due, rec.Ready, rec.Sent.Value, want)
		}
	}
}
