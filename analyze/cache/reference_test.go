package cache_test

import (
	"fmt"
	"testing"

	"moontide/analyze/cache"
	"moontide/trace/block"
	"moontide/trace/format"
	"moontide/trace/tracetest"
)

const conversationBlockSize = 512

// conversation reads the public Mooncake conversation trace.
func conversation(t *testing.T) *cache.Sequence {
	var table block.Table
	var s cache.Sequence
	for _, req := range tracetest.Conversation(t, format.Open, format.Options{}) {
		s.Add(table.AppendNumbers(nil, req.HashIDs), req.InputLength, req.SessionID)
	}
	return &s
}

func digits4(rate float64) string { return fmt.Sprintf("%.4f", rate) }

// Published values for this trace, with their published digits.
func TestConversationTrace(t *testing.T) {
	s := conversation(t)
	curve := s.Curve(conversationBlockSize)
	infinite := curve.Infinite().Rates()
	got := fmt.Sprintf("%.6f %.6f %.6f", infinite.Block, infinite.Token.Value, infinite.MeanRequest)
	if want := "0.366412 0.373624 0.384258"; got != want {
		t.Errorf("infinite cache: %s, want %s", got, want)
	}
	capacities := []int{1_000, 10_000, 30_000, 50_000, 100_000}
	tokens := []string{"0.0454", "0.2157", "0.3322", "0.3615", "0.3708"}
	for i, want := range []string{"0.0445", "0.2116", "0.3257", "0.3546", "0.3637"} {
		rates := curve.At(capacities[i]).Rates()
		if got := digits4(rates.Block); got != want {
			t.Errorf("LRU block hit rate at %d: %s, want %s", capacities[i], got, want)
		}
		if got := digits4(rates.Token.Value); got != tokens[i] {
			t.Errorf("LRU token hit rate at %d: %s, want %s", capacities[i], got, tokens[i])
		}
	}
	for _, c := range []struct {
		policy     cache.Policy
		capacities []int
		want       []string
	}{
		{cache.LRU, capacities, []string{"0.0445", "0.2116", "0.3257", "0.3546", "0.3637"}},
		{cache.LFU, capacities, []string{"0.0481", "0.1322", "0.2761", "0.3438", "0.3631"}},
		{cache.Belady, []int{8_000, 10_000}, []string{"0.3659", "0.3664"}},
	} {
		hits, err := cache.Simulate(s, c.policy, conversationBlockSize, c.capacities...)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if got := digits4(hits[i].Rates().Block); got != want {
				t.Errorf("%s block hit rate at %d: %s, want %s", c.policy, c.capacities[i], got, want)
			}
		}
	}
	room := cache.RoomForReuse(s)
	if room != 8_139 {
		t.Errorf("RoomForReuse is %d blocks, want 8139", room)
	}
	// The bound need not let in what is never used again, and so needs one less.
	hits, err := cache.Simulate(s, cache.Belady, conversationBlockSize, room-2, room-1, room)
	if err != nil {
		t.Fatal(err)
	}
	for i, all := range []bool{false, true, true} {
		if got := hits[i].HitBlocks == curve.Infinite().HitBlocks; got != all {
			t.Errorf("Belady at %d blocks hits %d, as an infinite cache: %v, want %v", room-2+i, hits[i].HitBlocks, got, all)
		}
	}
}
