package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"moontide/replay"
	"moontide/replay/runfile"
)

const (
	quietEvery = 10 * time.Second // between two lines of progress
	drawEvery  = 250 * time.Millisecond
)

// screen is the terminal that w is, or nil where it is none on which lines can
// be drawn anew.
func screen(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return f
}

// view shows where a run is while it lasts: lines that are drawn anew on a
// terminal, a line now and then elsewhere.
type view struct {
	w          io.Writer
	screen     *os.File // nil where w is no terminal
	title      string
	runner     *replay.Runner
	plan       replay.Plan
	thresholds runfile.Thresholds
	live       *liveStats // with a screen
	pace       pace

	mu          sync.Mutex
	drawn       int // lines that are on the screen
	done, ended chan struct{}
}

func newView(w io.Writer, in input, run runfile.Run, runner *replay.Runner) *view {
	where := run.Target.URL
	if run.Target.Simulated {
		where = "the embedded endpoint"
	}
	return &view{
		w: w, screen: screen(w), title: fmt.Sprintf("%s on %s, model %s", in.name, where, run.Target.Model),
		runner: runner, plan: in.plan, thresholds: run.Thresholds, live: in.live,
	}
}

// watching is the folder, or one whose records the view sees where it has use
// for them.
func (v *view) watching(folder *runfile.Writer) replay.Recorder {
	if v.screen == nil {
		return folder
	}
	return watched{folder, v.live.see}
}

// start begins to show the run, until end is called.
func (v *view) start() {
	v.done, v.ended = make(chan struct{}), make(chan struct{})
	every := quietEvery
	if v.screen != nil {
		every = drawEvery
	}
	began := time.Now()
	go func() {
		defer close(v.ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				v.show(now, began)
			case <-v.done:
				return
			}
		}
	}()
}

// end takes the view off the screen.
func (v *view) end() {
	close(v.done)
	<-v.ended
	v.say("")
}

// say writes a text for which the view makes room.
func (v *view) say(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	io.WriteString(v.w, drawing(v.drawn, nil)+text)
	v.drawn = 0
}

func (v *view) show(now, began time.Time) {
	status := v.runner.Status()
	if !status.Start.IsZero() { // the clock of the records
		began = status.Start
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.screen == nil {
		fmt.Fprintf(v.w, "moontide: %s\n", progressLine(now.Sub(began), status, v.plan))
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

func (v *view) state(elapsed time.Duration, status replay.Status) *liveState {
	s := v.live.state(elapsed, v.thresholds)
	s.title, s.status, s.rows = v.title, status, v.plan.Rows
	s.span = time.Duration(v.plan.DurationMS * float64(time.Millisecond))
	s.closed = v.runner.Closed
	v.pace.add(progressed{at: elapsed, due: float64(s.due), sent: float64(status.Sent), done: float64(status.Done), tokens: s.tokens})
	s.rates = v.pace.rates()
	return &s
}

// drawing is what puts lines on a terminal in place of the ones that were drawn
// before, with the cursor in the line below.
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

// watched is a run's folder whose records the view sees as they are written.
type watched struct {
	*runfile.Writer
	see func(replay.Record)
}

func (w watched) Record(rec replay.Record) error {
	w.see(rec)
	return w.Writer.Record(rec)
}

func progressLine(elapsed time.Duration, s replay.Status, plan replay.Plan) string {
	of := ""
	if span := time.Duration(plan.DurationMS * float64(time.Millisecond)); span > 0 { // a closed loop has none
		of = fmt.Sprintf(" of %v", span.Round(time.Second))
	}
	return fmt.Sprintf("%v%s | sent %d of %d, in flight %d, done %d, failed %d | %d output tokens",
		elapsed.Round(time.Second), of, s.Sent, plan.Rows, s.InFlight, s.Done-s.Failed, s.Failed, s.OutputTokens)
}
