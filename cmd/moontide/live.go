package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// liveStats is the data of the live view other than the [replay.Status]. Its
// methods are called from the goroutines that read the trace, receive tokens,
// record and draw.
type liveStats struct {
	arrivals arrivals     // of rows with a timestamp
	chunks   atomic.Int64 // token chunks received

	mu              sync.Mutex
	ttft, itl, e2el recent
	lag, allTTFT    spread // of the whole run
	errors          map[replay.Class]int
	ended           struct{ chunks, tokens int } // of successful requests
}

func newLiveStats() *liveStats { return &liveStats{lag: newSpread(), allTTFT: newSpread()} }

// expect adds a row of the trace, before the run.
func (l *liveStats) expect(r trace.Request) {
	if r.Timestamp.Set {
		l.arrivals.add(time.Duration(r.Timestamp.Value * float64(time.Millisecond)))
	}
}

// see adds a record as its request ends.
func (l *liveStats) see(rec replay.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lag := rec.ClientLag(); lag.Set {
		l.lag.add(lag.Value)
	}
	if rec.Class != replay.OK {
		if l.errors == nil {
			l.errors = map[replay.Class]int{}
		}
		l.errors[rec.Class]++
		return
	}
	l.ended.chunks += rec.Chunks
	tokens, _ := rec.OutputTokens()
	l.ended.tokens += tokens
	if !rec.Sent.Set || !rec.First.Set || !rec.Last.Set {
		return
	}
	ttft := rec.First.Value - rec.Sent.Value
	l.allTTFT.add(ttft)
	l.ttft.add(rec.Done, ttft)
	l.e2el.add(rec.Done, rec.Last.Value-rec.Sent.Value)
	for _, gap := range rec.Gaps {
		l.itl.add(rec.Done, gap)
	}
}

// liveState is the content of the live view at one instant.
type liveState struct {
	title   string
	elapsed time.Duration // since the start of the run
	span    time.Duration // from the first arrival of the trace to the last
	rows    int           // of the trace
	timed   int           // rows with a timestamp
	due     int           // rows whose timestamp has passed
	closed  bool          // closed loop: timestamps are ignored
	status  replay.Status
	tokens  float64    // estimated output tokens received
	rates   progressed // per second, over the window
	ttft    quantiles
	itl     quantiles
	e2el    quantiles
	lag     time.Duration // client lag p99 so far
	limit   time.Duration // lag above which the run is INVALID
	verdict run.Level
	known   bool // there is a lag
	errors  map[replay.Class]int
}

// quantiles holds the 50th, 90th and 99th percentiles of n durations.
type quantiles struct {
	n             int
	p50, p90, p99 time.Duration
}

func quantilesOf(s spread) quantiles {
	return quantiles{s.count(), s.quantile(0.5), s.quantile(0.9), s.quantile(0.99)}
}

// state returns the content of the view at an instant of a run.
func (l *liveStats) state(elapsed time.Duration, thresholds runfile.Thresholds) liveState {
	s := liveState{elapsed: elapsed, timed: l.arrivals.rows, due: l.arrivals.by(elapsed)}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.ttft, s.itl, s.e2el = quantilesOf(l.ttft.until(elapsed)), quantilesOf(l.itl.until(elapsed)), quantilesOf(l.e2el.until(elapsed))
	s.errors = maps.Clone(l.errors)
	if s.known = l.lag.count() > 0; s.known {
		s.lag = l.lag.quantile(0.99)
		s.verdict, s.limit = run.LatenessSoFar(s.lag, l.allTTFT.quantile(0.5), thresholds)
	}
	// Most servers send one token per chunk; others report the count at the end
	// of a response.
	s.tokens = float64(l.chunks.Load())
	if l.ended.chunks > 0 && l.ended.tokens > 0 {
		s.tokens *= float64(l.ended.tokens) / float64(l.ended.chunks)
	}
	return s
}

// frame formats the state as lines no wider than the terminal.
func (s *liveState) frame(width int) []string {
	column := max(min((width-latencyNames)/3, 10), 6)
	lines := []string{
		fmt.Sprintf("%-*s%*s%*s%*s", latencyNames, fmt.Sprintf("last %v", liveWindow), column, "p50", column, "p90", column, "p99"),
		latencyLine("TTFT, ms", s.ttft, column), latencyLine("ITL, ms", s.itl, column), latencyLine("E2EL, ms", s.e2el, column),
	}
	requests := fmt.Sprintf("requests  %d of %d sent, %d in flight, %d done, %d failed",
		s.status.Sent, s.rows, s.status.InFlight, s.status.Done-s.status.Failed, s.status.Failed)
	lines = slices.Concat([]string{s.title, s.progress(width)}, folded(requests, width), folded(s.paces(), width), lines, folded(s.judged(), width))
	if len(s.errors) > 0 {
		var classes []string
		for _, class := range slices.Sorted(maps.Keys(s.errors)) {
			classes = append(classes, fmt.Sprintf("%s %d", class, s.errors[class]))
		}
		lines = append(lines, folded("errors    "+harmless(strings.Join(classes, ", ")), width)...)
	}
	for i, line := range lines {
		lines[i] = cutTo(harmless(line), width)
	}
	return lines
}

// latencyNames is the width of the names of latencies.
const latencyNames = 12

// folded wraps a line to a width, with continuation lines indented below its
// text. It does not wrap to very narrow widths.
func folded(line string, width int) (lines []string) {
	const indent, least = "          ", 30
	for width >= least && utf8.RuneCountInString(line) > width {
		space := strings.LastIndexByte(cutTo(line, width+1), ' ')
		if space <= len(indent) {
			break
		}
		lines, line = append(lines, strings.TrimRight(line[:space], " ")), indent+line[space+1:]
	}
	return append(lines, line)
}

// progress returns the progress bar: by the trace's clock until the last
// arrival, then by finished requests.
func (s *liveState) progress(width int) string {
	share, text := float64(s.status.Done)/float64(max(s.rows, 1)), clock(s.elapsed)
	switch {
	case s.closed || s.span == 0:
	case s.elapsed <= s.span:
		share = float64(s.elapsed) / float64(s.span)
		text = fmt.Sprintf("%s of %s of the trace", clock(s.elapsed), clock(s.span))
	default:
		text = fmt.Sprintf("%s, last arrival %s ago", clock(s.elapsed), clock(s.elapsed-s.span))
	}
	const least, most = 10, 40
	bar := min(width-len(text)-len("100 %     [] "), most)
	if bar < least {
		return fmt.Sprintf("%3.0f %%     %s", 100*share, text)
	}
	full := int(share * float64(bar))
	return fmt.Sprintf("%3.0f %%     [%s%s] %s", 100*share, strings.Repeat("#", full), strings.Repeat(".", bar-full), text)
}

// paces returns the rates and the number of requests that are due but not sent.
func (s *liveState) paces() string {
	line := fmt.Sprintf("rates     %.1f req/s sent, %.1f done, %.0f output tok/s", s.rates.sent, s.rates.done, s.rates.tokens)
	if s.closed || s.timed == 0 {
		return line
	}
	line = fmt.Sprintf("rates     %.1f req/s offered, %.1f sent, %.1f done, %.0f output tok/s", s.rates.due, s.rates.sent, s.rates.done, s.rates.tokens)
	if behind := s.due - s.status.Sent; behind > 0 {
		line += fmt.Sprintf("; %d queued", behind)
	}
	return line
}

// judged returns the client lag and the resulting verdict.
func (s *liveState) judged() string {
	if !s.known {
		return "verdict   no request has ended yet"
	}
	return fmt.Sprintf("verdict   %s so far: client lag p99 %s ms, INVALID above %s ms", s.verdict, millis(s.lag), millis(s.limit))
}

func latencyLine(name string, q quantiles, column int) string {
	cells := [3]string{"-", "-", "-"}
	if q.n > 0 {
		cells = [3]string{millis(q.p50), millis(q.p90), millis(q.p99)}
	}
	return fmt.Sprintf("%-*s%*s%*s%*s", latencyNames, name, column, cells[0], column, cells[1], column, cells[2])
}

// millis formats a duration in milliseconds.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 100 {
		return fmt.Sprintf("%.2f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

// clock formats a duration like a clock.
func clock(d time.Duration) string {
	seconds := int(d / time.Second)
	if seconds < 3600 {
		return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// cutTo truncates a line to a width.
func cutTo(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(width, 0)])
}
