package spec

import (
	"runtime"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/trace/format"
)

// TestMemoryIsBounded compares the heap after 5,000 requests and 300,000 more.
func TestMemoryIsBounded(t *testing.T) {
	drawing := parse(t, strings.Replace(busy, "num_requests: 3000", "num_requests: 1000000000", 1)).Draw()
	var row trace.Request
	heap := func(rows int) uint64 {
		for range rows {
			if err := drawing.Read(&row); err != nil {
				t.Fatal(err)
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	early := heap(5_000)
	if late := heap(300_000); late > early+early/2+1<<20 {
		t.Errorf("%d bytes after 5000 rows, %d after 300000 more", early, late)
	}
	runtime.KeepAlive(drawing)
}

func BenchmarkRead(b *testing.B) {
	for name, text := range map[string]string{
		"fixed":     "isl: 3000\nosl: 150",
		"lognormal": "isl: lognormal:3000:1:max=50000\nosl: lognormal:200:1:max=4000\ncorrelation: 0.3",
		"gamma":     "isl: 3000\nosl: 150\narrival: {cv: 2}",
		"bursts":    "isl: 3000\nosl: 150\nrate: 10\narrival: {cycle: {}, bursts: {on: 10, off: 20}}",
		"sessions":  busy,
	} {
		b.Run("description="+name, func(b *testing.B) {
			d := parse(b, text, Setting{Key: "num_requests", Value: "1000000000000", From: "-n"})
			drawing := d.Draw()
			var row trace.Request
			var out []byte
			var bytes int
			b.ReportAllocs()
			for b.Loop() {
				if err := drawing.Read(&row); err != nil {
					b.Fatal(err)
				}
				out = format.AppendRow(out[:0], row)
				bytes += len(out)
			}
			b.SetBytes(int64(bytes / b.N))
		})
	}
}
