package engine

import (
	"fmt"
	"testing"
	"time"

	"moontide/replay/transcript"
	"moontide/trace"
)

// A decode step of all sequences, or a phased token of each.
func BenchmarkDecode(b *testing.B) {
	for _, phased := range []bool{false, true} {
		for _, sequences := range []int{1, 16, 256, 4096} {
			b.Run(fmt.Sprintf("phased=%v/sequences=%d", phased, sequences), func(b *testing.B) {
				cfg := Config{Costs: Costs{Step: Millisecond}, KVBlocks: 1 << 30, MaxModelLen: 1 << 30}
				if phased {
					cfg.PhasedTPOT = ms
				}
				e := must(Deployment{Engine: cfg}.New())
				for i := range sequences {
					if err := e.Submit(0, &Request{Prompt: promptOf(16, uint64(i)), Output: min(1<<34/sequences, 1<<29)}); err != nil {
						b.Fatal(err)
					}
				}
				events := e.Advance(10*ms, nil)
				now, tokens := 10*ms, 0
				b.ReportAllocs()
				for b.Loop() {
					now += ms
					events = e.Advance(now, events[:0])
					tokens += len(events)
				}
				ns := float64(b.Elapsed().Nanoseconds())
				b.ReportMetric(ns/float64(tokens), "ns/token")
			})
		}
	}
}

// A prompt, half of it cached, from submission to its only token.
func BenchmarkPrompt(b *testing.B) {
	for _, isl := range []int{512, 8192, 131_072} {
		b.Run(fmt.Sprintf("isl=%d", isl), func(b *testing.B) {
			e := must(Deployment{Engine: Config{KVBlocks: 57_000, MaxBatchedTokens: 8192, MaxSeqs: 1024}}.New())
			ids := make([]uint64, isl/512)
			var events []Event
			now, next := time.Duration(0), uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				for i := range ids {
					if ids[i] = uint64(i); i >= len(ids)/2 {
						next++
						ids[i] = 1<<32 + next
					}
				}
				r := &Request{Prompt: TracePrompt(transcript.New(trace.Request{InputLength: isl, HashIDs: ids}, 0, 512), 0, 16), Output: 1}
				now++
				if err := e.Submit(now, r); err != nil {
					b.Fatal(err)
				}
				for at, ok := e.Next(); ok; at, ok = e.Next() {
					events = e.Advance(at, events[:0])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*isl), "ns/token")
		})
	}
}
