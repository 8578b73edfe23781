package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"moontide/analyze/report/doc"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/trace"
	"moontide/trace/stats"
)

// leastColumns is the narrowest terminal that reports are written for.
const leastColumns = 40

// terminalOf returns the layout of text for w: the width of COLUMNS or of the terminal, and
// colour on a terminal unless NO_COLOR is set.
func terminalOf(w io.Writer) (layout doc.Terminal) {
	f, isFile := w.(*os.File)
	isTerminal := isFile && term.IsTerminal(int(f.Fd()))
	if isTerminal {
		layout.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		layout.Width, _, _ = term.GetSize(int(f.Fd())) // 0 if unknown
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		layout.Width = columns
	}
	if layout.Width > 0 {
		layout.Width = max(layout.Width, leastColumns)
	}
	return layout
}

const (
	quietEvery = 10 * time.Second // between two lines of progress
	drawEvery  = 250 * time.Millisecond
	rateWindow = 10 * time.Second // covered by rates
)

// screen returns w if it is a terminal that can redraw lines, otherwise nil.
func screen(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return f
}

// view shows the progress of runs, one after another: two redrawn lines on a terminal, or a
// line every few seconds.
type view struct {
	std    streams
	screen *os.File // nil if messages do not go to a terminal
	stop   stop

	// State of the current run.
	started experiment.Started
	end     func()

	mu    sync.Mutex
	drawn int              // lines on the screen
	ttft  *stats.Durations // of requests that ended
	past  []progress       // within rateWindow, for rates
}

// progress is the progress of a run at an instant.
type progress struct {
	elapsed time.Duration
	replay.Status
}

func newView(std streams, stop stop) *view {
	return &view{std: std, screen: screen(std.err), stop: stop, ttft: stats.NewDurations(10)}
}

// observer returns the callbacks of a run that update the view.
func (v *view) observer() experiment.Observer {
	o := experiment.Observer{
		Message: func(text string) { v.std.say("%s", text) },
		Start:   v.start,
		End:     func() { v.end() },
	}
	if v.screen != nil {
		o.Record = v.see
	}
	return o
}

// see adds the record of a request that ended.
func (v *view) see(rec replay.Record) {
	if rec.Class == replay.OK && rec.Sent.Set && rec.First.Set {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.ttft.Add(rec.First.Value-rec.Sent.Value, 1)
	}
}

// start shows the run until end is called.
func (v *view) start(s experiment.Started) {
	announce(v.std, s)
	v.started, v.past = s, nil
	v.ttft = stats.NewDurations(10)
	every := quietEvery
	if v.screen != nil {
		every = drawEvery
	}
	began := time.Now()
	running, end := context.WithCancel(context.Background())
	var showing sync.WaitGroup
	showing.Go(func() {
		for ticks := time.Tick(every); ; {
			select {
			case now := <-ticks:
				v.show(now, began)
			case <-running.Done():
				return
			}
		}
	})
	unhook := context.AfterFunc(v.stop.gently, func() {
		text := "moontide: sending stopped"
		if n := v.status().InFlight; n > 0 {
			text += fmt.Sprintf("; waiting for %d requests in flight, interrupt again to end at once", n)
		}
		v.say(text + "\n")
	})
	v.end = func() {
		unhook()
		end()
		showing.Wait()
		v.say("")
	}
}

// say replaces the lines on the screen with a text.
func (v *view) say(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	io.WriteString(v.std.err, drawing(v.drawn, nil)+text)
	v.drawn = 0
}

// show shows the progress at an instant.
func (v *view) show(now, began time.Time) {
	status := v.status()
	if !status.Start.IsZero() { // the clock of the records
		began = status.Start
	}
	at := progress{now.Sub(began), status}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.screen == nil {
		v.std.say("%s", at.line(v.started.Plan))
		return
	}
	width, _, err := term.GetSize(int(v.screen.Fd()))
	if err != nil {
		width = helpWidth
	}
	lines := v.lines(at, width-1)
	io.WriteString(v.std.err, drawing(v.drawn, lines))
	v.drawn = len(lines)
}

// status returns the progress of the whole run, or of this part if it does not lead.
func (v *view) status() replay.Status {
	if v.started.All != nil {
		return v.started.All()
	}
	return v.started.Status()
}

// lines returns the lines shown on a terminal: counts, then rates and TTFT. In a run of
// several parts, TTFT covers part 1 only.
func (v *view) lines(at progress, width int) []string {
	v.past = append(v.past, at)
	for len(v.past) > 2 && v.past[1].elapsed <= at.elapsed-rateWindow {
		v.past = v.past[1:]
	}
	rates := at.rates(v.past[0])
	if v.ttft.Count() > 0 {
		rates += fmt.Sprintf(" | TTFT p50 %.1f ms, p99 %.1f ms", trace.MS(v.ttft.Quantile(0.5)), trace.MS(v.ttft.Quantile(0.99)))
	}
	lines := []string{at.line(v.started.Plan), rates}
	for i, line := range lines {
		lines[i] = line[:min(len(line), max(width, 0))] // ASCII
	}
	return lines
}

// line returns the counts.
func (p progress) line(plan replay.Plan) string {
	of := ""
	// A closed loop has no duration; the last responses end after the schedule.
	if span := replay.Milliseconds(plan.DurationMS); span > 0 && p.elapsed <= span {
		of = fmt.Sprintf(" of %v", span.Round(time.Second))
	}
	return fmt.Sprintf("%v%s | sent %d of %d, in flight %d, done %d, failed %d | %d output tokens",
		p.elapsed.Round(time.Second), of, p.Sent, plan.Rows, p.InFlight, p.Done-p.Failed, p.Failed, p.OutputTokens)
}

// rates returns the rates since an earlier instant.
func (p progress) rates(since progress) string {
	seconds := max((p.elapsed - since.elapsed).Seconds(), 1e-3)
	per := func(now, before int) float64 { return float64(now-before) / seconds }
	return fmt.Sprintf("%.1f req/s sent, %.1f done, %.0f output tok/s",
		per(p.Sent, since.Sent), per(p.Done, since.Done), per(p.OutputTokens, since.OutputTokens))
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
