package sessions_test

import (
	"fmt"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace/format"
	"moontide/trace/tracetest"
)

func BenchmarkFit(b *testing.B) {
	rows := tracetest.Conversation(b, format.Open, format.Options{})
	b.ReportAllocs()
	for b.Loop() {
		fit(b, rows, sessions.Options{})
	}
}

func BenchmarkRequests(b *testing.B) {
	m := fit(b, tracetest.Conversation(b, format.Open, format.Options{}), sessions.Options{})
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("requests=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			blocks := 0
			for b.Loop() {
				for r := range m.Requests(1, n) {
					blocks += len(r.HashIDs)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/request")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	m := fit(b, tracetest.Conversation(b, format.Open, format.Options{}), sessions.Options{})
	const n = 100_000
	var size counter
	for b.Loop() {
		w, err := format.NewWriter(&size, "trace.jsonl")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.WriteAll(m.Requests(1, n)); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(size) / int64(b.N))
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
