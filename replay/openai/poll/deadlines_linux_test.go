package poll

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Deadlines pass in order after being set, changed and removed.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := time.Now()
		var d deadlines
		conns := make([]*Conn, 12)
		for i := range conns {
			conns[i] = &Conn{}
		}
		want := map[*Conn]time.Time{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			c := rapid.SampledFrom(conns).Draw(t, "conn")
			if rapid.Bool().Draw(t, "remove") {
				d.remove(c)
				delete(want, c)
				continue
			}
			want[c] = start.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "deadline")) * time.Second)
			d.set(c, want[c])
		}
		for now := start.Add(-time.Second); now.Before(start.Add(10 * time.Second)); now = now.Add(time.Second) {
			for c := d.passed(now); c != nil; c = d.passed(now) {
				if deadline, ok := want[c]; !ok || !deadline.Equal(now) {
					t.Fatalf("at %v passes one of %v, %t", now.Sub(start), deadline.Sub(start), ok)
				}
				d.remove(c)
				delete(want, c)
			}
			next := time.Hour
			for _, deadline := range want {
				next = min(next, deadline.Sub(now))
			}
			if got := d.next(now); got != next {
				t.Fatalf("the next passes in %v, want %v", got, next)
			}
		}
		if len(want) > 0 || len(d) > 0 {
			t.Fatalf("%d did not pass", len(want))
		}
	})
}
