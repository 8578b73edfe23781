package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sent is a transfer on a link and when it ends.
type sent struct{ start, work, end time.Duration }

// send returns transfers with their ends under a law.
func send(t rapid.TB, law Sharing, transfers []sent) []sent {
	l := link{sharing: law}
	requests := make(map[*Request]int)
	next, now := 0, time.Duration(0)
	for left := len(transfers); left > 0; {
		at, any := l.next()
		if next < len(transfers) && (!any || transfers[next].start <= at) {
			now = transfers[next].start
			r := &Request{}
			requests[r] = next
			l.start(now, r, transfers[next].work)
			next++
			continue
		}
		if at < now {
			t.Fatalf("%s: the next transfer ends at %v, before %v", law, at, now)
		}
		now = at
		ended := l.end(now, nil)
		if len(ended) == 0 {
			t.Fatalf("%s: no transfer ends at %v", law, now)
		}
		for _, u := range ended {
			transfers[requests[u.r]].end = now
			left--
		}
	}
	return transfers
}

func anyTransfers(t *rapid.T) []sent {
	transfers := make([]sent, rapid.IntRange(1, 8).Draw(t, "transfers"))
	start := time.Duration(0)
	for i := range transfers {
		start += time.Duration(rapid.IntRange(0, 3000).Draw(t, "gap"))
		transfers[i] = sent{start: start, work: time.Duration(rapid.IntRange(1, 3000).Draw(t, "work"))}
	}
	return transfers
}

// A shared link works without a pause while there is something to send: all laws
// have the same busy periods, and only the order differs.
func TestLinksConserveWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		transfers := anyTransfers(t)
		queue := send(t, Queue, append([]sent(nil), transfers...))
		fair := send(t, Fair, append([]sent(nil), transfers...))
		batch := send(t, Batch, append([]sent(nil), transfers...))
		alone := send(t, Independent, append([]sent(nil), transfers...))
		// Shares are rounded to a nanosecond at each start.
		slack := time.Duration(len(transfers) * len(transfers))
		free := time.Duration(0)
		for i, s := range transfers {
			free = max(free, s.start) + s.work
			if queue[i].end != free {
				t.Fatalf("queue: transfer %d ends at %v, want %v", i, queue[i].end, free)
			}
			if alone[i].end != s.start+s.work {
				t.Fatalf("independent: transfer %d ends at %v, want %v", i, alone[i].end, s.start+s.work)
			}
			last := i == len(transfers)-1 || transfers[i+1].start > free
			if !last {
				continue
			}
			// The end of a busy period: the last transfer of a queue.
			first := i
			for first > 0 && queue[first-1].end >= transfers[first].start {
				first--
			}
			latest := time.Duration(0)
			for k := first; k <= i; k++ {
				latest = max(latest, fair[k].end)
				if batch[k].end != free {
					t.Fatalf("batch: transfer %d ends at %v, want %v", k, batch[k].end, free)
				}
				if fair[k].end < alone[k].end {
					t.Fatalf("fair: transfer %d ends at %v, and alone at %v", k, fair[k].end, alone[k].end)
				}
			}
			if latest < free || latest > free+slack {
				t.Fatalf("fair: the last transfer ends at %v, in a queue at %v", latest, free)
			}
		}
	})
}

// Two equal transfers at once take twice as long; a shorter one leaves early and
// gives its share to the other.
func TestFairLink(t *testing.T) {
	got := send(t, Fair, []sent{{work: 100}, {work: 100}, {start: 1000, work: 100}, {start: 1000, work: 300}})
	for i, want := range []time.Duration{200, 200, 1200, 1400} {
		if got[i].end != want {
			t.Errorf("transfer %d ends at %v, want %v", i, got[i].end, want)
		}
	}
}
