package bench

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"moontide/replay"
	"moontide/replay/evidence"
	"moontide/replay/monotonic"
	"moontide/replay/openai"
)

// stampsHeader asks the simulated endpoint for the write time of each event.
var stampsHeader = openai.Header{Name: "X-Moontide-Stamps", Value: "1"}

// drive replays one load against a new endpoint and compares the client's
// record with the server's write times.
func (cfg *CalibrateConfig) drive(ctx context.Context, load Load) (p Point, err error) {
	debug.FreeOSMemory() // or the previous load's memory would count towards this one
	endpoint, err := cfg.Start(ctx, load.Pace())
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, endpoint.Close()) }()
	truth := newTruth(load)
	var records []replay.Record
	var watching *watch
	p = Point{Load: load}
	result, err := Run(ctx, Config{
		Trace:            Trace{Requests: load.rows(), Name: load.String()},
		keepFirstArrival: true,
		Client:           openai.Config{URL: endpoint.URL, Headers: []openai.Header{stampsHeader}, OnToken: truth.take},
		Observer: Observer{
			Start:  func(s Started) { watching = startWatch(s.Status, truth, endpoint.PID) },
			Record: func(rec replay.Record) { records = append(records, rec) },
			End:    func() { watching.end(&p) },
		},
	})
	if err != nil && !errors.Is(err, ErrNoSuccess) {
		return p, err
	}
	p.Lost = load.Requests - result.Run.Sent
	truth.compare(records, result.Run.Started, &p)
	p.TooMuch = judge(p)
	return p, nil
}

// truth holds the times at which the endpoint wrote the tokens of a load.
type truth struct {
	load    Load
	written [][]int64 // by row and token: CLOCK_MONOTONIC in nanoseconds
	events  atomic.Int64
}

func newTruth(load Load) *truth {
	t := &truth{load: load, written: make([][]int64, load.Requests)}
	for row := range t.written {
		t.written[row] = make([]int64, 0, load.OSL)
	}
	return t
}

// take stores the write time of an event. compare detects missing ones.
func (t *truth) take(row int, data []byte) {
	t.events.Add(1)
	if at, ok := writtenAt(data); ok {
		t.written[row] = append(t.written[row], at)
	}
}

// writtenAt parses the write time at the end of an event.
func writtenAt(data []byte) (ns int64, ok bool) {
	const key = `"written_ns":`
	end := len(data) - 1
	if end < 0 || data[end] != '}' {
		return 0, false
	}
	begin := end
	for begin > 0 && '0' <= data[begin-1] && data[begin-1] <= '9' {
		begin--
	}
	if begin == end || end-begin > 18 || begin < len(key) || string(data[begin-len(key):begin]) != key {
		return 0, false
	}
	for _, digit := range data[begin:end] {
		ns = 10*ns + int64(digit-'0')
	}
	return ns, true
}

// compare fills in a point from the records.
func (t *truth) compare(records []replay.Record, start time.Time, p *Point) {
	zero := monotonic.At(start)
	var ttft, itl, lag []float64
	var events float64 // per second
	var first, last time.Duration
	for i, rec := range records {
		if rec.Sent.Set {
			lag = append(lag, ms(rec.ClientLag().Value))
			sent := rec.Sent.Value
			if i == 0 {
				first, last = sent, sent
			}
			first, last = min(first, sent), max(last, sent)
		}
		if rec.Class != replay.OK {
			p.Lost++
			continue
		}
		p.stamps = rec.Stamps
		stamp, gaps, ok := errorsOf(zero+int64(rec.First.Value), rec.Gaps, t.written[rec.Row])
		if !ok {
			p.Lost++
			continue
		}
		ttft = append(ttft, ms(stamp.Abs()))
		for _, gap := range gaps {
			itl = append(itl, ms(gap.Abs()))
		}
		events += tokenRate(rec.Gaps)
	}
	p.TTFT, p.ITL, p.ClientLag = spreadOf(ttft), spreadOf(itl), spreadOf(lag)
	if p.Kind == Streams {
		p.EventRate = events
	}
	if last > first {
		p.SentRate = float64(len(lag)-1) / (last - first).Seconds()
	}
}

// tokenRate returns the tokens per second of a stream with these gaps. The
// first gap is ignored because it sets the stream's phase.
func tokenRate(gaps []time.Duration) float64 {
	var sum time.Duration
	for i, gap := range gaps {
		if i > 0 {
			sum += gap
		}
	}
	if sum <= 0 {
		return 0
	}
	return float64(len(gaps)-1) / sum.Seconds()
}

// watch samples the client and endpoint processes during a load.
type watch struct {
	truth       *truth
	status      func() replay.Status
	pids        [2]int // client, server
	first, last sample // while the load was steady
	most        int    // requests in flight
	memory      [2]float64
	stop, ended chan struct{}
}

// sample holds the CPU time used up to an instant.
type sample struct {
	at     time.Time
	events int64
	used   [2]time.Duration
	all    time.Duration // of all processes
}

const watchEvery = 20 * time.Millisecond

func startWatch(status func() replay.Status, t *truth, server int) *watch {
	w := &watch{truth: t, status: status, pids: [2]int{os.Getpid(), server}, stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				w.take()
			case <-w.stop:
				return
			}
		}
	}()
	return w
}

func (w *watch) take() {
	s := w.status()
	w.most = max(w.most, s.InFlight)
	for i, pid := range w.pids {
		w.memory[i] = max(w.memory[i], float64(evidence.ResidentBytes(pid))/(1<<20))
	}
	if !steady(w.truth.load, s) {
		return
	}
	now := sample{at: time.Now(), events: w.truth.events.Load(), all: machineCPU()}
	for i, pid := range w.pids {
		now.used[i] = evidence.ProcessCPU(pid)
	}
	if w.first.at.IsZero() {
		w.first = now
	}
	w.last = now
}

// steady reports whether a load is in its measured phase: all streams are in
// flight, or requests start and end.
func steady(l Load, s replay.Status) bool {
	if l.Kind == Streams {
		return s.InFlight == l.Requests
	}
	return s.Done > 0 && s.Sent < l.Requests
}

// end stops sampling and fills in a point.
func (w *watch) end(p *Point) {
	close(w.stop)
	<-w.ended
	p.Streams = w.most
	took, events := w.last.at.Sub(w.first.at), float64(w.last.events-w.first.events)
	others := w.last.all - w.first.all
	for i, work := range []*Work{&p.Client, &p.Server} {
		work.MemoryMB = w.memory[i]
		used := w.last.used[i] - w.first.used[i]
		others -= used
		if took > 0 {
			work.Cores = used.Seconds() / took.Seconds()
		}
		if events > 0 {
			work.PerEvent = float64(used.Microseconds()) / events
		}
	}
	if took > 0 {
		p.EventRate = events / took.Seconds()
		p.Others = max(others.Seconds()/took.Seconds(), 0)
	}
}

// machineCPU returns the CPU time of all processes and the kernel.
func machineCPU() time.Duration {
	return time.Duration(evidence.MachineCPU().Processes) * (time.Second / 100)
}
