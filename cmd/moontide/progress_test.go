package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/runfile"
)

// terminal emulates the part of a terminal that the view needs: its lines after
// some text.
type terminal struct {
	lines       [][]rune
	row, column int
}

func (t *terminal) write(text string) {
	for len(text) > 0 {
		var n int
		var command byte
		switch {
		case strings.HasPrefix(text, "\r"):
			t.column, text = 0, text[1:]
		case strings.HasPrefix(text, "\n"):
			t.row, t.column, text = t.row+1, 0, text[1:]
		case strings.HasPrefix(text, "\x1b["):
			if _, err := fmt.Sscanf(text[2:], "%d%c", &n, &command); err != nil {
				command = text[2]
			}
			text = text[strings.IndexByte(text, command)+1:]
			t.obey(command, n)
		default:
			t.put([]rune(text)[0])
			text = string([]rune(text)[1:])
		}
	}
}

func (t *terminal) obey(command byte, n int) {
	switch command {
	case 'A':
		t.row -= n
	case 'K':
		t.cut(t.row)
	case 'J':
		t.cut(t.row)
		t.lines = t.lines[:min(len(t.lines), t.row+1)]
	}
}

func (t *terminal) cut(row int) {
	if row < len(t.lines) {
		t.lines[row] = t.lines[row][:min(t.column, len(t.lines[row]))]
	}
}

func (t *terminal) put(r rune) {
	for len(t.lines) <= t.row {
		t.lines = append(t.lines, nil)
	}
	line := &t.lines[t.row]
	for len(*line) <= t.column {
		*line = append(*line, ' ')
	}
	(*line)[t.column] = r
	t.column++
}

func (t *terminal) String() string {
	var lines []string
	for _, line := range t.lines {
		lines = append(lines, string(line))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// Whatever was drawn before, the terminal shows the messages and below them the
// last frame, and nothing else.
func TestDrawing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var screen terminal
		var said []string
		line := rapid.StringMatching(`[a-z ]{0,9}[a-z]`)
		var frame []string
		for range rapid.IntRange(1, 6).Draw(t, "frames") {
			old := len(frame)
			frame = rapid.SliceOfN(line, 0, 5).Draw(t, "frame")
			screen.write(drawing(old, frame))
			if rapid.Bool().Draw(t, "say") {
				text := line.Draw(t, "text")
				screen.write(drawing(len(frame), nil) + text + "\n")
				said, frame = append(said, text), nil
			}
		}
		if got, want := screen.String(), strings.Join(append(said, frame...), "\n"); got != want {
			t.Fatalf("the terminal shows\n%s\nwant\n%s", got, want)
		}
	})
}

// Without a terminal, there are lines without control characters.
func TestQuietView(t *testing.T) {
	var b bytes.Buffer
	if screen(&b) != nil {
		t.Fatal("a buffer is no terminal")
	}
	v := &view{w: &b, started: bench.Started{Plan: replay.Plan{Rows: 9, DurationMS: 60_000}, Status: func() replay.Status { return replay.Status{} }}}
	began := time.Now()
	v.show(began.Add(20*time.Second), began)
	v.say("moontide: something\n")
	v.show(began.Add(30*time.Second), began)
	v.show(began.Add(70*time.Second), began)
	want := "moontide: 20s of 1m0s | sent 0 of 9, in flight 0, done 0, failed 0 | 0 output tokens\n" +
		"moontide: something\n" +
		"moontide: 30s of 1m0s | sent 0 of 9, in flight 0, done 0, failed 0 | 0 output tokens\n" +
		"moontide: 1m10s | sent 0 of 9, in flight 0, done 0, failed 0 | 0 output tokens\n"
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}

// The view shows the runner's status, the plan and the records.
func TestViewState(t *testing.T) {
	v := &view{
		title: "t.jsonl", live: newLiveStats(),
		started: bench.Started{
			Run:  runfile.Run{Limits: runfile.Limits{Closed: true}},
			Plan: replay.Plan{Rows: 9, DurationMS: 1500},
		},
	}
	v.live.see(answer(0, 50*time.Millisecond, 3))
	v.state(0, replay.Status{})
	for range 30 {
		v.token(0, nil)
	}
	s := v.state(2*time.Second, replay.Status{Sent: 4, Done: 2, InFlight: 2})
	if s.title != "t.jsonl" || s.rows != 9 || s.span != 1500*time.Millisecond || !s.closed || s.status.Sent != 4 || s.ttft.n != 1 {
		t.Errorf("%+v", s)
	}
	if s.rates.sent != 2 || s.rates.done != 1 || s.rates.tokens != 30 { // of two in each chunk
		t.Errorf("%+v", s.rates)
	}
}
