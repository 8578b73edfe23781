package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"moontide/replay"
	"moontide/replay/bench"
	"moontide/trace"
)

const (
	quietEvery = 10 * time.Second // between two lines of progress
	drawEvery  = 250 * time.Millisecond
)

// screen returns w if it is a terminal on which lines can be redrawn, otherwise
// nil.
func screen(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return f
}

// view shows the progress of runs, one after another: a live view on a
// terminal, a line every few seconds elsewhere.
type view struct {
	w      io.Writer
	screen *os.File // nil if w is not a terminal
	stop   stop
	std    streams

	// State of the current run.
	started bench.Started
	title   string
	live    *liveStats // set if screen is
	pace    pace
	end     func()

	mu    sync.Mutex
	drawn int // lines on the screen
}

func newView(std streams, stop stop) *view {
	return &view{w: std.err, screen: screen(std.err), stop: stop, std: std, live: newLiveStats()}
}

// observer returns the callbacks of a run that update the view.
func (v *view) observer() bench.Observer {
	o := bench.Observer{
		Message: func(text string) { fmt.Fprintf(v.w, "moontide: %s\n", harmless(text)) },
		Start:   v.start,
		End:     func() { v.end() },
	}
	if v.screen != nil {
		o.Row = func(r trace.Request) { v.live.expect(r) }
		o.Record = func(rec replay.Record) { v.live.see(rec) }
	}
	return o
}

func (v *view) token(int, []byte) { v.live.chunks.Add(1) }

// start shows the run until end is called.
func (v *view) start(s bench.Started) {
	announce(v.std, s)
	where := s.Run.Target.URL
	if s.Run.Target.Simulated {
		where = "the embedded endpoint"
	}
	v.started, v.title = s, fmt.Sprintf("%s on %s, model %s", s.Run.Trace.Name, where, s.Run.Target.ModelText())
	if s.Parts > 0 {
		v.title += fmt.Sprintf("; latencies of part 1 of %d", s.Parts)
	}
	every := quietEvery
	if v.screen != nil {
		every = drawEvery
	}
	done, ended := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				v.show(now, began)
			case <-done:
				return
			}
		}
	}()
	unhook := context.AfterFunc(v.stop.gently, func() {
		text := "moontide: sending stopped"
		if n := v.status().InFlight; n > 0 {
			text += fmt.Sprintf("; waiting for %d requests in flight, interrupt again to end at once", n)
		}
		v.say(text + "\n")
	})
	v.end = func() {
		unhook()
		close(done)
		<-ended
		v.say("")
		v.live, v.pace = newLiveStats(), pace{}
	}
}

// say replaces the live view with a text.
func (v *view) say(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	io.WriteString(v.w, drawing(v.drawn, nil)+text)
	v.drawn = 0
}

func (v *view) show(now, began time.Time) {
	status := v.status()
	if !status.Start.IsZero() { // the clock of the records
		began = status.Start
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.screen == nil {
		fmt.Fprintf(v.w, "moontide: %s\n", progressLine(now.Sub(began), status, v.started.Plan))
		return
	}
	width, height, err := term.GetSize(int(v.screen.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	lines := v.state(now.Sub(began), status).frame(width - 1)
	if len(lines) >= height {
		lines = lines[:max(height-1, 0)]
	}
	io.WriteString(v.w, drawing(v.drawn, lines))
	v.drawn = len(lines)
}

// status returns the progress of the whole run, as far as this process knows it.
func (v *view) status() replay.Status {
	if v.started.All != nil {
		return v.started.All()
	}
	return v.started.Status()
}

func (v *view) state(elapsed time.Duration, status replay.Status) *liveState {
	s := v.live.state(elapsed, v.started.Run.Thresholds)
	s.title, s.status, s.rows = v.title, status, v.started.Plan.Rows
	s.span = replay.Milliseconds(v.started.Plan.DurationMS)
	s.closed = v.started.Run.Limits.Closed
	if v.started.Parts > 0 { // tokens in flight at other parts are not known here
		s.tokens = float64(status.OutputTokens)
	}
	v.pace.add(progressed{at: elapsed, due: float64(s.due), sent: float64(status.Sent), done: float64(status.Done), tokens: s.tokens})
	s.rates = v.pace.rates()
	return &s
}

// drawing replaces the lines drawn before and leaves the cursor below.
func drawing(drawn int, lines []string) string {
	var b strings.Builder
	if drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA", drawn)
	}
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\n")
	}
	if drawn > len(lines) {
		b.WriteString("\x1b[J")
	}
	return b.String()
}

func progressLine(elapsed time.Duration, s replay.Status, plan replay.Plan) string {
	of := ""
	// A closed loop has no duration, and the last answers outlast that of a schedule.
	if span := replay.Milliseconds(plan.DurationMS); span > 0 && elapsed <= span {
		of = fmt.Sprintf(" of %v", span.Round(time.Second))
	}
	return fmt.Sprintf("%v%s | sent %d of %d, in flight %d, done %d, failed %d | %d output tokens",
		elapsed.Round(time.Second), of, s.Sent, plan.Rows, s.InFlight, s.Done-s.Failed, s.Failed, s.OutputTokens)
}
