package main

import (
	"bytes"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/trace"
)

// aRun is a run of 9 requests within a minute, before the first is sent.
var aRun = experiment.Started{Plan: replay.Plan{Rows: 9, DurationMS: 60_000}, Status: func() replay.Status { return replay.Status{} }}

// Without a terminal, there are lines without control characters.
func TestQuietView(t *testing.T) {
	var b bytes.Buffer
	if screen(&b) != nil {
		t.Fatal("a buffer is no terminal")
	}
	v := &view{std: streams{err: &b}, started: aRun}
	began := time.Now()
	v.show(began.Add(20*time.Second), began)
	v.say("moontide: something\n")
	v.show(began.Add(70*time.Second), began)
	want := "moontide: 20s of 1m0s | sent 0 of 9, in flight 0, done 0, failed 0 | 0 output tokens\n" +
		"moontide: something\n" +
		"moontide: 1m10s | sent 0 of 9, in flight 0, done 0, failed 0 | 0 output tokens\n"
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}

// A terminal shows counts, rates of the last ten seconds and TTFT, no wider than it is.
func TestViewLines(t *testing.T) {
	v := newView(streams{}, stop{})
	v.started = aRun
	at := func(second, sent, done int) []string {
		status := replay.Status{Sent: sent, Done: done, Failed: 1, InFlight: sent - done, OutputTokens: 100 * done}
		return v.lines(progress{time.Duration(second) * time.Second, status}, 200)
	}
	at(0, 0, 0)
	at(10, 1, 1)
	for i := range 100 {
		sent := trace.Some(time.Second)
		v.see(replay.Record{Class: replay.OK, Sent: sent, First: trace.Some(time.Second + time.Duration(i+1)*time.Millisecond)})
		v.see(replay.Record{Class: replay.Timeout, Sent: sent, First: trace.Some(time.Hour)})
	}
	lines := at(20, 9, 6)
	want := []string{
		"20s of 1m0s | sent 9 of 9, in flight 3, done 5, failed 1 | 600 output tokens",
		"0.8 req/s sent, 0.5 done, 50 output tok/s | TTFT p50 50.0 ms, p99 99.0 ms",
	}
	if lines[0] != want[0] || lines[1] != want[1] {
		t.Errorf("%q, want %q", lines, want)
	}
	for width := range 80 {
		for _, line := range v.lines(progress{}, width) {
			if len(line) > width {
				t.Fatalf("%d columns: %q", width, line)
			}
		}
	}
}

// New lines replace those before, and a message all of them.
func TestDrawing(t *testing.T) {
	for _, test := range []struct {
		drawn int
		lines []string
		want  string
	}{
		{0, nil, ""},
		{0, []string{"a", "b"}, "a\x1b[K\nb\x1b[K\n"},
		{2, []string{"c", "d"}, "\r\x1b[2Ac\x1b[K\nd\x1b[K\n"},
		{2, nil, "\r\x1b[2A\x1b[J"},
	} {
		if got := drawing(test.drawn, test.lines); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
