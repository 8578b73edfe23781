package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// liveStates holds runs at an instant.
var liveStates = []struct {
	name  string
	state liveState
}{
	{"begins", liveState{title: "conversation.jsonl on http://127.0.0.1:8000, model m", span: 178 * time.Second, rows: 3500, timed: 3500}},
	{"goes", liveState{
		title: "conversation.jsonl on http://127.0.0.1:8000, model m", elapsed: 62*time.Second + 300*time.Millisecond, span: 178 * time.Second,
		rows: 3500, timed: 3000, due: 1240,
		status: replay.Status{Sent: 1234, Done: 1189, Failed: 3, InFlight: 45},
		rates:  progressed{due: 12.04, sent: 11.96, done: 11.5, tokens: 4511.6},
		ttft:   quantiles{115, 123400 * time.Microsecond, 234500 * time.Microsecond, 2345 * time.Millisecond},
		itl:    quantiles{40000, 20100 * time.Microsecond, 21 * time.Millisecond, 35200 * time.Microsecond},
		e2el:   quantiles{115, 3456700 * time.Microsecond, 4567 * time.Millisecond, 56789 * time.Millisecond},
		known:  true, lag: 80 * time.Microsecond, limit: 12300 * time.Microsecond, verdict: run.Valid,
		errors: map[replay.Class]int{replay.Timeout: 2, "no\x1b[2J": 1},
	}},
	{"is_behind", liveState{
		title: "conversation.jsonl", elapsed: 2 * time.Hour, span: time.Hour, rows: 10, timed: 10, due: 10,
		status: replay.Status{Sent: 4, Done: 2, InFlight: 2},
		ttft:   quantiles{1, time.Second, time.Second, time.Second},
		e2el:   quantiles{1, time.Second, time.Second, time.Second},
		known:  true, lag: 20 * time.Millisecond, limit: 10 * time.Millisecond, verdict: run.Invalid,
	}},
	{"is_closed", liveState{
		title: "concurrency-8", elapsed: 5 * time.Second, rows: 80, closed: true, due: 80, timed: 80,
		status: replay.Status{Sent: 28, Done: 20, InFlight: 8}, rates: progressed{sent: 5, done: 4, tokens: 600},
	}},
}

func TestLiveFrame(t *testing.T) {
	for _, test := range liveStates {
		for _, width := range []int{80, 40} {
			name := test.name
			if width == 40 {
				name += "_narrow"
			}
			frame := strings.Join(test.state.frame(width), "\n") + "\n"
			tracetest.Golden(t, "testdata/live_"+name+".txt", frame)
		}
	}
}

// No line is wider than the terminal, and external text cannot control it.
func TestLiveFrameFits(t *testing.T) {
	for _, test := range liveStates {
		for width := range 120 {
			for _, line := range test.state.frame(width) {
				if n := utf8.RuneCountInString(line); n > width {
					t.Fatalf("%s: %d columns of %d: %q", test.name, n, width, line)
				}
				if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
					t.Fatalf("%s: %q", test.name, line)
				}
			}
		}
	}
}

// A narrow terminal shows the same as a wide one, in more lines.
func TestLiveFrameNarrow(t *testing.T) {
	for _, test := range liveStates {
		for width := 40; width < 80; width++ {
			words := func(width int) []string {
				return strings.Fields(strings.Join(test.state.frame(width)[2:], " ")) // below the title and the bar
			}
			if diff := cmp.Diff(words(200), words(width)); diff != "" {
				t.Fatalf("%s, %d columns: %s", test.name, width, diff)
			}
		}
	}
}

// answer is a record that was ready and due at an instant and sent 1 ms later,
// with a TTFT and the given number of 10 ms gaps.
func answer(at, ttft time.Duration, gaps int) replay.Record {
	const gap = 10 * time.Millisecond
	sent := at + time.Millisecond
	first := sent + ttft
	last := first + time.Duration(gaps)*gap
	rec := replay.Record{
		Request: trace.Request{OutputLength: 2 * (gaps + 1)},
		Due:     at, Ready: at, Sent: trace.Some(sent), First: trace.Some(first), Last: trace.Some(last), Done: last, Chunks: gaps + 1,
		Counts: replay.Counts{Output: trace.Some(2 * (gaps + 1))},
	}
	for range gaps {
		rec.Gaps = append(rec.Gaps, gap)
	}
	return rec
}

// Latencies in the view cover requests that ended within the window; the lag
// covers the whole run.
func TestLiveStats(t *testing.T) {
	l := newLiveStats()
	for i := range 30 {
		l.see(answer(time.Duration(i)*time.Second, time.Duration(100+i)*time.Millisecond, 2))
	}
	late := answer(29*time.Second, time.Second, 0)
	late.Sent = trace.Some(late.Ready + 400*time.Millisecond)
	late.First = trace.Some(late.Sent.Value + time.Second)
	late.Last, late.Done = late.First, late.First.Value
	l.see(late)
	l.see(replay.Record{Class: replay.Connect, Done: 29 * time.Second})
	for i := range 60 {
		l.expect(trace.Request{Timestamp: trace.Some(1000 * float64(i))})
	}
	l.expect(trace.Request{Delay: trace.Some(5.0)})
	for range 100 {
		l.chunks.Add(1)
	}
	s := l.state(30*time.Second, runfile.Thresholds{})
	// Of the seconds from 21 on: 121 .. 129 ms, and the late one.
	if s.ttft.n != 10 || !about(s.ttft.p50, 125*time.Millisecond) || !about(s.ttft.p99, time.Second) {
		t.Errorf("TTFT %+v", s.ttft)
	}
	if s.itl.n != 18 || !about(s.itl.p50, 10*time.Millisecond) || !about(s.itl.p99, 10*time.Millisecond) {
		t.Errorf("ITL %+v", s.itl)
	}
	if s.e2el.n != 10 || !about(s.e2el.p50, 145*time.Millisecond) {
		t.Errorf("E2EL %+v", s.e2el)
	}
	if !s.known || !about(s.lag, 400*time.Millisecond) || s.verdict != run.Invalid || !about(s.limit, 10*time.Millisecond) {
		t.Errorf("lag %v, limit %v, %v", s.lag, s.limit, s.verdict)
	}
	if diff := cmp.Diff(map[replay.Class]int{replay.Connect: 1}, s.errors); diff != "" {
		t.Error(diff)
	}
	if s.tokens != 200 { // two in each chunk, as the answers say that ended
		t.Errorf("%v tokens", s.tokens)
	}
	if s.timed != 60 || s.due != 30 {
		t.Errorf("%d rows by the clock, %d of them due", s.timed, s.due)
	}
}

func about(got, want time.Duration) bool { return (got - want).Abs() <= want/50 }

// The run's thresholds determine the verdict.
func TestLiveVerdictGoesByTheThresholds(t *testing.T) {
	l := newLiveStats()
	l.see(answer(0, 10*time.Millisecond, 0)) // 1 ms late
	if s := l.state(0, runfile.Thresholds{MaxLagMS: 4}); s.verdict != run.Suspect || s.limit != 4*time.Millisecond {
		t.Errorf("%v, limit %v", s.verdict, s.limit)
	}
	if s := l.state(0, runfile.Thresholds{}); s.verdict != run.Valid || s.limit != 10*time.Millisecond {
		t.Errorf("%v, limit %v", s.verdict, s.limit)
	}
	slow := newLiveStats()
	slow.see(answer(0, time.Second, 0))
	if s := slow.state(0, runfile.Thresholds{MaxLagShare: 0.5}); !about(s.limit, 500*time.Millisecond) {
		t.Errorf("a median TTFT of 1 s allows half of it, not %v", s.limit)
	}
}

func BenchmarkLiveRecord(b *testing.B) {
	for _, gaps := range []int{10, 1000} {
		b.Run(fmt.Sprintf("gaps=%d", gaps), func(b *testing.B) {
			l := newLiveStats()
			rec := answer(0, 100*time.Millisecond, gaps)
			for b.Loop() {
				rec.Done += time.Millisecond
				l.see(rec)
			}
		})
	}
}

func BenchmarkLiveFrame(b *testing.B) {
	v := &view{live: newLiveStats(), started: bench.Started{Plan: replay.Plan{Rows: 1000, DurationMS: 1e6}}}
	for i := range 1000 {
		v.live.see(answer(time.Duration(i)*10*time.Millisecond, 100*time.Millisecond, 100))
	}
	for b.Loop() {
		v.state(10*time.Second, replay.Status{Sent: 1000, Done: 1000}).frame(100)
	}
}
