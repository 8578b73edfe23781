package openai

import (
	"testing"
	"time"

	"moontide/replay/openai/poll"
)

// Token chunks that were read together with a later event may be late by as much
// as they can have waited.
func TestSharedStamps(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms, unread int) poll.Arrival {
		return poll.Arrival{Time: start.Add(time.Duration(ms) * time.Millisecond), Kernel: true, Unread: time.Duration(unread) * time.Millisecond}
	}
	for _, test := range []struct {
		name       string
		reads      [][3]int // ms, unread ms, chunks; 0 chunks: the end, twice
		first, max int      // ms
		merged     uint64
	}{
		{"each by itself", [][3]int{{10, 5, 1}, {20, 5, 1}}, 0, 0, 0},
		{"the first two together", [][3]int{{10, 5, 2}, {20, 5, 1}}, 5, 5, 1},
		{"the first three together", [][3]int{{10, 5, 3}}, 5, 5, 2},
		{"the second and third together", [][3]int{{10, 5, 1}, {20, 7, 2}}, 0, 7, 1},
		{"no earlier than what was read before", [][3]int{{10, 5, 1}, {12, 7, 2}}, 0, 2, 1},
		{"both", [][3]int{{10, 3, 2}, {20, 7, 2}, {30, 1, 2}}, 3, 7, 3},
		{"from a reader that was in time", [][3]int{{10, 0, 4}}, 0, 0, 3},
		{"the end by itself", [][3]int{{10, 5, 1}, {20, 7, 1}, {21, 9, 0}}, 0, 0, 0},
		{"the last with the end", [][3]int{{10, 5, 1}, {20, 7, 1}, {20, 7, 0}}, 0, 7, 1},
		{"the last, which is the first, with the end", [][3]int{{10, 5, 1}, {10, 5, 0}}, 5, 5, 1},
		{"the last two with the end", [][3]int{{10, 5, 1}, {20, 7, 2}, {20, 7, 0}}, 0, 7, 2},
	} {
		var shared poll.Counter
		s := stream{shared: &shared}
		for _, read := range test.reads {
			for range read[2] {
				s.tokenChunk(at(read[0], read[1]))
			}
			if read[2] == 0 {
				s.otherEvent(at(read[0], read[1]))
				s.otherEvent(at(read[0], read[1]))
			}
		}
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		if s.firstStampError != ms(test.first) || s.maxStampError != ms(test.max) || shared.Snapshot().Count() != test.merged {
			t.Errorf("%s: first %v, max %v, shared %d", test.name, s.firstStampError, s.maxStampError, shared.Snapshot().Count())
		}
	}
}

func TestStampErrorsQuantile(t *testing.T) {
	t.Parallel()
	var late poll.Counter
	late.Add(4*time.Millisecond, 5)
	late.Add(8*time.Millisecond, 5)
	for _, test := range []struct {
		chunks uint64
		q      float64
		want   time.Duration // or up to an eighth more
	}{
		{1000, 0.99, 0}, {1001, 0.99, 0}, {999, 0.99, 4 * time.Millisecond}, {500, 0.99, 4 * time.Millisecond},
		{499, 0.99, 8 * time.Millisecond}, {1000, 1, 8 * time.Millisecond}, {10, 0.5, 4 * time.Millisecond}, {0, 0.5, 4 * time.Millisecond},
	} {
		if got := (StampErrors{test.chunks, late.Snapshot()}).Quantile(test.q); got < test.want || got > test.want*9/8 {
			t.Errorf("%v of %d chunks is %v, want %v", test.q, test.chunks, got, test.want)
		}
	}
	if got := (StampErrors{Chunks: 5}).Quantile(1); got != 0 {
		t.Errorf("of none merged %v", got)
	}
	m := StampErrors{20, late.Snapshot()}.Since(StampErrors{8, poll.Delays{}})
	if m.Chunks != 12 || m.Shared.Count() != 10 {
		t.Errorf("%d chunks, %d merged", m.Chunks, m.Shared.Count())
	}
}
