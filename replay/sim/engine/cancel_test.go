package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// latencies checks that no first token comes before the latency of its request,
// the cost of its prompt and, if it waits for that, the transfer.
func latencies(t rapid.TB, d Deployment, arrivals []arrival, h history) {
	for _, e := range firsts(h) {
		r := e.Request
		least := d.Latency + times(r.Prompt.Len()-r.Cached(), d.Engine.Costs.PrefillToken).Duration()
		if d.Disaggregated() && d.Transfer.FirstTokenAfter && r.Output > 1 {
			least += d.Transfer.Base + times(r.Prompt.Len(), d.Transfer.PerToken).Duration()
		}
		if took := e.At - arrivals[r.Owner.(int)].at; took < least {
			t.Fatalf("request %d has its first token after %v; it takes at least %v", r.Owner, took, least)
		}
	}
}

// A request that is cancelled leaves nothing behind, wherever it is: before the
// router, in a queue, in a step, on the link or on a decode engine.
func TestCancelInEachState(t *testing.T) {
	seen := map[state]int{}
	for _, sharing := range Sharings {
		for after := ms; after < 250*ms; after += 3 * ms {
			c, err := Deployment{
				Engine:  Config{Costs: Costs{PrefillToken: Millisecond, Sequence: 10 * Millisecond}, MaxSeqs: 1, KVBlocks: 16},
				Prefill: 1, Decode: 1, Latency: 20 * ms, Transfer: Transfer{Base: 30 * ms, Sharing: sharing},
			}.New()
			if err != nil {
				t.Fatal(err)
			}
			var requests []*Request
			for i := range 3 {
				r := &Request{Prompt: promptOf(16, sequence(20, uint64(100*i))...), Output: 5, Owner: i}
				requests = append(requests, r)
				if err := c.Submit(0, r); err != nil {
					t.Fatal(err)
				}
			}
			var events []Event
			for at, ok := c.Next(); ok && at < after; at, ok = c.Next() {
				events = c.Advance(at, events)
			}
			last := requests[2]
			seen[last.state]++
			c.Advance(after, events)
			c.Cancel(after, last)
			events = c.Advance(time.Hour, nil)
			for _, e := range events {
				if e.Request == last {
					t.Fatalf("%s: %v after it was cancelled at %v", sharing, e.Kind, after)
				}
			}
			if !requests[0].Ended() || !requests[1].Ended() || !last.Ended() {
				t.Fatalf("%s: cancelled at %v: not all have ended", sharing, after)
			}
			for _, k := range c.ranks() {
				checkIdle(t, k)
			}
			if c.inTransfer() != 0 || c.arriving.len() != 0 {
				t.Fatalf("%s: cancelled at %v: transfers are left", sharing, after)
			}
		}
	}
	for _, s := range []state{arriving, waiting, running, transferring, ended} {
		if seen[s] == 0 {
			t.Errorf("never cancelled in state %d: %v", s, seen)
		}
	}
}

// A request is served although a step that was due had not been processed when it
// was submitted.
func TestSubmitLate(t *testing.T) {
	for _, async := range []bool{false, true} {
		c, err := Deployment{Engine: Config{Costs: Costs{Sequence: 10 * Millisecond}, AsyncScheduling: async}}.New()
		if err != nil {
			t.Fatal(err)
		}
		first := &Request{Prompt: promptOf(16, 1), Output: 5}
		if err := c.Submit(0, first); err != nil {
			t.Fatal(err)
		}
		c.Advance(ms, nil)
		c.Cancel(2*ms, first)
		late := &Request{Prompt: promptOf(16, 2), Output: 5}
		if err := c.Submit(15*ms, late); err != nil { // the step has ended at 10 ms
			t.Fatal(err)
		}
		if events := c.Advance(time.Minute, nil); !late.Ended() {
			t.Errorf("async %v: not served: %v", async, events)
		}
	}
}

func TestCancelInTransfer(t *testing.T) {
	c, err := Deployment{Prefill: 1, Decode: 1, Transfer: Transfer{Base: time.Hour}}.New()
	if err != nil {
		t.Fatal(err)
	}
	h := play(t, c, 16, []arrival{{tokens: sequence(50, 1), output: 3, cancelAfter: time.Minute}}, func() {})
	if len(h.events) != 1 || c.inTransfer() != 0 || !h.requests[0].Ended() {
		t.Errorf("%v, %d transfers", eventLines(h), c.inTransfer())
	}
	for _, e := range c.ranks() {
		checkIdle(t, e)
	}
}
