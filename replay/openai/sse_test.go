package openai

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// eventsOf reads all events of a stream that arrives in pieces.
func eventsOf(pieces ...string) (events []string, err error) {
	in := newEventReader(&pieceReader{pieces})
	for {
		data, err := in.next()
		if err != nil {
			return events, err
		}
		events = append(events, string(data))
	}
}

type pieceReader struct{ pieces []string }

func (r *pieceReader) Read(p []byte) (int, error) {
	for len(r.pieces) > 0 && r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
	}
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.pieces[0])
	r.pieces[0] = r.pieces[0][n:]
	return n, nil
}

// reference is what the standard says, on a whole stream and without a thought
// for cost, and the exception that is made for [DONE].
func reference(stream string) (events []string) {
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	lines := strings.Split(strings.ReplaceAll(stream, "\r", "\n"), "\n")
	var data []string
	for i, line := range lines {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch ended := i < len(lines)-1; {
		case ended && line == "":
			if data != nil {
				events = append(events, strings.Join(data, "\n"))
			}
			data = nil
		case field == "data" && (ended || value == done):
			data = append(data, value)
		}
	}
	if len(data) == 1 && data[0] == done {
		events = append(events, done)
	}
	return events
}

func TestEventsByTheStandard(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string][]string{
		"data: a\n\ndata: b\n\n":                   {"a", "b"},
		"data:a\r\rdata:b\r\n\r\n":                 {"a", "b"},
		"data: a\ndata:b\ndata\n\n":                {"a\nb\n"},
		"data\n\n":                                 {""},
		"data:  a\n\n":                             {" a"},
		": ping\n\nevent: x\nid: 1\nretry: 3\n\n":  nil,
		"event: x\ndata: a\nid: 1\n\n":             {"a"},
		"datas: a\n\nDATA: b\n\n data: c\n\n":      nil,
		"data: a\n\ndata: half":                    {"a"},
		"data: a\n\ndata: half\n":                  {"a"},
		"data: a\n\ndata: [DONE]":                  {"a", done},
		"data: [DONE]\n":                           {done},
		"data: [DONE]\r":                           {done},
		"data: a\ndata: [DONE]":                    nil,
		"data: [DONE":                              nil,
		"\n\n\r\n\ndata: a\n\n\n\n":                {"a"},
		"data: {\"content\":\"\u2028\\n\"}\n\n":    {"{\"content\":\"\u2028\\n\"}"},
		"data: a\r\n\r\ndata: b\r\n\r\ndata: [DON": {"a", "b"},
	} {
		got, err := eventsOf(stream)
		if err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("%q has events %q, %v, want %q", stream, got, err, want)
		}
		if got := reference(stream); !slices.Equal(got, want) {
			t.Errorf("by the reference %q has events %q, want %q", stream, got, want)
		}
		if got, _ := eventsOf(strings.Split(stream, "")...); !slices.Equal(got, want) {
			t.Errorf("byte by byte %q has events %q, want %q", stream, got, want)
		}
	}
}

// However a stream is cut, its events are the same.
func TestEventsWhereverTheNetworkCuts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.OneOf(
			rapid.SampledFrom([]string{"", "data", "data:", "data: ", "data: [DONE]", ": note", "event: x", "id: 1", "retry: 9", "da"}),
			rapid.StringMatching(`data: ?[a-z :]{0,8}`),
			rapid.Just("data: "+strings.Repeat("tide ", 2000)),
		)
		end := rapid.SampledFrom([]string{"\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\r\r", ""})
		var stream strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			stream.WriteString(line.Draw(t, "line") + end.Draw(t, "end"))
		}
		rest := stream.String()
		var pieces []string
		for rest != "" {
			n := min(rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, 9000)).Draw(t, "cut"), len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, err := eventsOf(pieces...)
		if want := reference(stream.String()); err != io.EOF || !slices.Equal(got, want) {
			t.Fatalf("events %q, %v, want %q", got, err, want)
		}
	})
}

// endless repeats a text for ever, and counts what was read of it.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(p[n:], e.text[(e.read+n)%len(e.text):])
	}
	e.read += n
	return n, nil
}

func TestEventTooLong(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "data: tide", "data: tide\n"} {
		in := &endless{text: text}
		events := newEventReader(in)
		if _, err := events.next(); !errors.Is(err, errEventTooLong) {
			t.Errorf("%q without end: %v", text, err)
		}
		if in.read > 4*maxEvent || cap(events.buf)+cap(events.data) > 4*maxEvent {
			t.Errorf("%q without end: %d bytes read, %d kept", text, in.read, cap(events.buf)+cap(events.data))
		}
	}
}

// What is passed over is not kept.
func TestCommentsTakeNoMemory(t *testing.T) {
	t.Parallel()
	ping := &endless{text: ": ping\n\nevent: x\n"}
	events := newEventReader(io.MultiReader(io.LimitReader(ping, 2*maxEvent), strings.NewReader("\n\ndata: a\n\n")))
	data, err := events.next()
	if err != nil || string(data) != "a" {
		t.Fatalf("event %.20q, %v", data, err)
	}
	if kept := cap(events.buf) + cap(events.data); kept > 16<<10 {
		t.Errorf("%d bytes kept", kept)
	}
}

// What fails before the stream ends is what next returns.
func TestEventReaderFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	in := newEventReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), failing{broken}))
	if data, err := in.next(); string(data) != "a" || err != nil {
		t.Errorf("event %q, %v", data, err)
	}
	for range 2 {
		if data, err := in.next(); data != nil || err != broken {
			t.Errorf("event %q, %v, want %v", data, err, broken)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzEvents(f *testing.F) {
	f.Add("data: a\r\n\r\n: ping\n\ndata: b\ndata:c\r\rdata: [DONE]", uint8(3))
	f.Add("data\n\nid: 1\ndata: x\n\ndata: half", uint8(1))
	f.Add("data: [DONE]\r\n\r", uint8(12))
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		var pieces []string
		for rest := stream; rest != ""; {
			n := min(int(size)+1, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, err := eventsOf(pieces...)
		if want := reference(stream); err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("%q in pieces of %d has events %q, %v, want %q", stream, int(size)+1, got, err, want)
		}
	})
}
