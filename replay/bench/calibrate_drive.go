package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"moontide/replay"
	"moontide/replay/monotonic"
	"moontide/replay/openai"
	"moontide/replay/runfile"
)

// stampsHeader asks the simulated endpoint to say when it wrote each event.
var stampsHeader = openai.Header{Name: "X-Moontide-Stamps", Value: "1"}

// drive drives one load against an endpoint of its own.
func (cfg *CalibrateConfig) drive(ctx context.Context, load Load) (p Point, err error) {
	debug.FreeOSMemory() // of the load before: it would count as this one's
	endpoint, err := cfg.Start(ctx, load.Pace())
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, endpoint.Close()) }()
	told := newTruth(load)
	client, err := openai.New(openai.Config{URL: endpoint.URL, Headers: []openai.Header{stampsHeader}, OnToken: told.take})
	if err != nil {
		return p, err
	}
	defer client.Close()
	if _, err := client.Probe(ctx); err != nil {
		return p, err
	}
	dir := filepath.Join(cfg.Dir, "load")
	folder, err := runfile.Create(dir, runfile.Run{})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, folder.Close(), os.RemoveAll(dir)) }()
	return told.run(ctx, client, folder, endpoint.PID)
}

// run replays the load.
func (t *truth) run(ctx context.Context, client *openai.Client, folder *runfile.Writer, server int) (Point, error) {
	records := &keeper{folder: folder}
	runner := &replay.Runner{Client: client, Recorder: records, Precise: true}
	watch := startWatch(runner, t, server)
	tally, err := runner.Run(ctx, t.load.rows())
	p := Point{Load: t.load, Lost: t.load.Requests - tally.Sent}
	watch.end(&p)
	if err != nil {
		return p, err
	}
	t.compare(records.records, tally.Start, &p)
	p.TooMuch = judge(p)
	return p, nil
}

// keeper records as a replay does, and keeps what it records.
type keeper struct {
	folder  *runfile.Writer
	records []replay.Record
}

func (k *keeper) Record(rec replay.Record) error {
	k.records = append(k.records, rec)
	return k.folder.Record(rec)
}

// truth is when the endpoint wrote the tokens of a load.
type truth struct {
	load    Load
	written [][]int64 // of each row, of each token: CLOCK_MONOTONIC in nanoseconds
	events  atomic.Int64
}

func newTruth(load Load) *truth {
	t := &truth{load: load, written: make([][]int64, load.Requests)}
	for row := range t.written {
		t.written[row] = make([]int64, 0, load.OSL)
	}
	return t
}

// take notes what an event says. One that says nothing is missed later.
func (t *truth) take(row int, data []byte) {
	t.events.Add(1)
	if at, ok := writtenAt(data); ok {
		t.written[row] = append(t.written[row], at)
	}
}

// writtenAt reads the stamp that ends an event.
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

// compare completes a point by what was recorded.
func (t *truth) compare(records []replay.Record, start time.Time, p *Point) {
	zero := monotonic.At(start)
	var ttft, itl, lag []float64
	var events float64 // a second
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

// tokenRate is how many tokens a second come with these gaps, but for the
// first, in which a stream takes its phase.
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

// watch looks at both processes while a load is driven.
type watch struct {
	truth       *truth
	runner      *replay.Runner
	pids        [2]int // client, server
	first, last look   // while the load was steady
	most        int    // in flight
	memory      [2]float64
	stop, ended chan struct{}
}

// look is what had been done at an instant.
type look struct {
	at     time.Time
	events int64
	used   [2]time.Duration
	all    time.Duration // of all processes
}

// watchEvery is often enough, and seldom enough to cost nothing.
const watchEvery = 20 * time.Millisecond

func startWatch(runner *replay.Runner, t *truth, server int) *watch {
	w := &watch{truth: t, runner: runner, pids: [2]int{os.Getpid(), server}, stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				w.look()
			case <-w.stop:
				return
			}
		}
	}()
	return w
}

func (w *watch) look() {
	s := w.runner.Status()
	w.most = max(w.most, s.InFlight)
	for i, pid := range w.pids {
		w.memory[i] = max(w.memory[i], residentMemory(pid))
	}
	if !steady(w.truth.load, s) {
		return
	}
	now := look{at: time.Now(), events: w.truth.events.Load(), all: allProcessorTime()}
	for i, pid := range w.pids {
		now.used[i] = processorTime(pid)
	}
	if w.first.at.IsZero() {
		w.first = now
	}
	w.last = now
}

// steady reports whether a load is what it is about: all streams there, or
// requests that come while as many end.
func steady(l Load, s replay.Status) bool {
	if l.Kind == Streams {
		return s.InFlight == l.Requests
	}
	return s.Done > 0 && s.Sent < l.Requests
}

// end completes a point by what was seen.
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
