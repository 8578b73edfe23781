package sessions_test

import (
	"fmt"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// Think times and tool times are drawn from their own distributions, even if there
// are few of them.
func TestKindsOfDelays(t *testing.T) {
	t.Parallel()
	for _, conversations := range []int{6, 200} {
		var rows []trace.Request
		for i := range conversations {
			session := fmt.Sprint("c", i)
			rows = append(rows, trace.Request{Timestamp: trace.Some(20_000 * float64(i)), SessionID: session, InputLength: 100, OutputLength: 10 + i%7})
			for turn := range 5 {
				r := trace.Request{SessionID: session, InputLength: 200 + 100*turn, OutputLength: 10 + i%7,
					DelayKind: trace.Tool, Delay: trace.Some(float64(1000 + 10*i + turn))}
				if turn%3 == 2 {
					r.DelayKind, r.Delay = trace.Think, trace.Some(float64(60_000+100*i))
				}
				rows = append(rows, r)
			}
		}
		m := fit(t, rows, sessions.Options{})
		kinds := map[trace.DelayKind]int{}
		for _, r := range draw(t, m, 1, 2000) {
			if kinds[r.DelayKind]++; r.DelayKind == trace.Tool && r.Delay.Value > 10_000 || r.DelayKind == trace.Think && r.Delay.Value < 50_000 {
				t.Fatalf("%d conversations: a delay of %v ms for %s", conversations, r.Delay.Value, r.DelayKind)
			}
			if r.Timestamp.Set && r.DelayKind != "" {
				t.Fatal("a first turn has a kind of delay")
			}
		}
		if share := float64(kinds[trace.Think]) / float64(kinds[trace.Think]+kinds[trace.Tool]); share < .15 || share > .25 {
			t.Errorf("%d conversations: a share of %.2f think times, want .2: %v", conversations, share, kinds)
		}
	}
}
