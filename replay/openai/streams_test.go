//go:build linux

package openai

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moontide/replay"
	"moontide/replay/monotonic"
	"moontide/trace"
)

// BenchmarkStreams drives many streams of one token per event from a server in
// another process, which reports when it wrote each event. It measures the CPU time
// of an event in this process and the errors of TTFT and ITL.
func BenchmarkStreams(b *testing.B) {
	for _, l := range []struct{ streams, rate int }{{1000, 20}, {1000, 50}, {1000, 66}, {5000, 13}, {10800, 6}} {
		for _, lockStep := range []bool{false, true} {
			rate := l.streams * l.rate
			if l.streams == 10800 {
				rate = 66_200
			}
			interval := time.Duration(l.streams) * time.Second / time.Duration(rate)
			work := load{l.streams, int(4 * time.Second / interval), interval, lockStep}
			b.Run(fmt.Sprintf("streams=%d/rate=%d/lockstep=%t", l.streams, rate, lockStep), func(b *testing.B) {
				for range b.N {
					drive(b, work)
				}
			})
		}
	}
}

func drive(b *testing.B, l load) {
	server := startLoad(b, l)
	c, err := New(Config{URL: server.url, Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	outcomes := make([]replay.Outcome, l.streams)
	lags := make([]time.Duration, l.streams)
	empty := inUse()
	var sending sync.WaitGroup
	for i := range outcomes {
		made, err := c.Prepare(trace.Request{OutputLength: l.tokens, Extra: fmt.Appendf(nil, `{"text_input":"%d"}`, i)}, i)
		if err != nil {
			b.Fatal(err)
		}
		sending.Go(func() {
			ready := time.Now()
			outcomes[i] = made.Send(context.Background())
			lags[i] = outcomes[i].Sent.Sub(ready) - outcomes[i].ConnectTime
		})
		if i%20 == 0 {
			time.Sleep(2 * time.Millisecond)
		}
	}
	server.line(b)
	b.ReportMetric(float64(inUse()-empty)/1024/float64(l.streams), "KB/stream")
	before, delays, began := processTime(), c.ReadDelay(), time.Now()
	sending.Wait()
	spent, took := processTime()-before, time.Since(began)
	delays = c.ReadDelay().Since(delays)

	offset := monotonic.At(began)
	lost, events := 0, 0
	var ttft, itl, blur []time.Duration
	wrote := server.wrote(b, l)
	for i, o := range outcomes {
		if o.Class != replay.OK || len(o.Gaps) != l.tokens-1 || o.Stamps != replay.KernelStamps {
			if lost++; lost == 1 {
				b.Logf("class %q (%s), %d gaps, %s", o.Class, o.Error, len(o.Gaps), o.Stamps)
			}
			continue
		}
		written := wrote[i*l.tokens : (i+1)*l.tokens]
		at := offset + int64(o.First.Sub(began))
		ttft = append(ttft, time.Duration(at-written[0]).Abs())
		for k, gap := range o.Gaps {
			itl = append(itl, (gap - time.Duration(written[k+1]-written[k])).Abs())
		}
		blur = append(blur, o.MaxStampError)
		events += l.tokens
	}
	b.ReportMetric(float64(lost), "lost")
	b.ReportMetric(float64(events)/took.Seconds(), "events/s")
	b.ReportMetric(float64(spent.Microseconds())/float64(events), "us-CPU/event")
	quantiles(b, "ttft", ttft)
	quantiles(b, "itl", itl)
	quantiles(b, "lag", lags)
	quantiles(b, "blur", blur)
	b.ReportMetric(float64(delays.Quantile(0.99).Microseconds()), "us-delay-p99")
	var use unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &use)
	b.ReportMetric(float64(use.Maxrss)/1024, "MB")
}

func quantiles(b *testing.B, name string, errors []time.Duration) {
	slices.Sort(errors)
	if n := len(errors); n > 0 {
		b.ReportMetric(float64(errors[n/2].Nanoseconds())/1e3, "us-"+name+"-p50")
		b.ReportMetric(float64(errors[n*99/100].Nanoseconds())/1e3, "us-"+name+"-p99")
	}
}

// inUse is the memory in use, in bytes.
func inUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

func processTime() time.Duration {
	var use unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
