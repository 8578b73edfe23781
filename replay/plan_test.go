package replay

import (
	"math"
	"strings"
	"testing"

	"moontide/trace"
)

func TestScan(t *testing.T) {
	rows := append(atMS(5, 5, 1005), trace.Request{Delay: trace.Some(3.0), SessionID: "s"})
	rows[1].OutputLength = 0
	p, err := Scan(trace.FromSlice(rows))
	if err != nil {
		t.Fatal(err)
	}
	if p.Rows != 4 || p.DurationMS != 1000 || p.Turns != 1 || p.ZeroOutput != 2 {
		t.Errorf("%+v", p)
	}
	moved := append([]trace.Request(nil), rows...)
	moved[2].Timestamp.Value += 0.000_001
	if q, _ := Scan(trace.FromSlice(moved)); q.Schedule == p.Schedule {
		t.Error("a nanosecond does not change the schedule's digest")
	}
	last := append(atMS(0, 366*86_400_000), trace.Request{Delay: trace.Some(366 * 86_400_000.0), SessionID: "s"})
	if _, err := Scan(trace.FromSlice(last)); err != nil {
		t.Errorf("rows due a year after the start: %v", err)
	}
	for want, bad := range map[string][]trace.Request{
		"the trace has no requests":                 nil,
		"row 2 has neither a timestamp nor a delay": append(atMS(1), trace.Request{}),
		// Times beyond the range of nanoseconds, and waits beyond the limit.
		"row 2 would be sent 1.16e+04 days after the start: a replay waits for 366 days at most": atMS(0, 1e12),
		"row 1 would be sent +Inf days after the start":                                          atMS(math.Inf(1)),
		"row 1 would be sent NaN days after the start":                                           atMS(math.NaN()),
		"row 2 would be sent 367 days after the turn before":                                     append(atMS(1), trace.Request{Delay: trace.Some(367 * 86_400_000.0), SessionID: "s"}),
	} {
		if _, err := Scan(trace.FromSlice(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
