package openai

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// eventsOf returns all events of a stream that arrives in pieces.
func eventsOf(pieces ...string) (events []string, err error) {
	var cutter eventCutter
	for _, piece := range pieces {
		b := []byte(piece)
		for {
			data, rest, ok, err := cutter.next(b)
			if err != nil {
				return events, err
			}
			if !ok {
				break
			}
			events = append(events, string(data))
			b = rest
		}
		// What arrived is gone after the call.
		for i := range b {
			b[i] = 'x'
		}
	}
	if err := cutter.failure(); err != nil {
		return events, err
	}
	if data, ok := cutter.end(); ok {
		events = append(events, string(data))
	}
	return events, nil
}

// reference is what the standard says, on a whole stream and without a thought
// for cost, and the exceptions that are made for errors, which end a stream, and
// for [DONE].
func reference(stream string) (events []string, failed bool) {
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	lines := strings.Split(strings.ReplaceAll(stream, "\r", "\n"), "\n")
	var data []string
	for i, line := range lines {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch ended := i < len(lines)-1; {
		case ended && line == "":
			if failed {
				return events, true
			}
			if data != nil {
				events = append(events, strings.Join(data, "\n"))
			}
			data = nil
		case field == "event" && ended:
			failed = failed || value == "error"
		case field == "error" && ended:
			failed = true
		case field == "data" && (ended || value == done):
			data = append(data, value)
		}
	}
	if len(data) == 1 && data[0] == done && !failed {
		events = append(events, done)
	}
	return events, failed
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
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q has events %q, %v, want %q", stream, got, err, want)
		}
		if got, _ := reference(stream); !slices.Equal(got, want) {
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
			rapid.SampledFrom([]string{"", "data", "data:", "data: ", "data: [DONE]", ": note", "event: x", "event: error", "error: x", "id: 1", "retry: 9", "da"}),
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
		if want, failed := reference(stream.String()); (err != nil) != failed || !slices.Equal(got, want) {
			t.Fatalf("events %q, %v, want %q, failed %t", got, err, want, failed)
		}
	})
}

// An event that is an error says what went wrong in its data or in a comment.
func TestErrorEvents(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{
		"data: a\n\nevent: error\n: gone\n\ndata: b\n\n":             "gone",
		"event: error\n: gone\n: for good\n\n":                       "gone for good",
		"event: error\n: gone\ndata: {}\n\n":                         "gone",
		"event: error\ndata: {\"message\":\"gone\"}\n\n":             "gone",
		"event: error\ndata: {\"error\":{\"message\":\"gone\"}}\n\n": "gone",
		"event: error\ndata: gone\n\n":                               "an event that is an error: gone",
		"event: error\n\n":                                           "an event that is an error: ",
		"event:error\r\n:gone\r\n\r\n":                               "gone",
		"error: {\"code\":500,\"message\":\"gone\"}\n\ndata: [DONE]": "gone",
		"event: error\n: gone":                                       "an event that is an error: ",
		": well\nevent: error\n: gone\ndata: [DONE]":                 "gone",
	} {
		for _, pieces := range [][]string{{stream}, strings.Split(stream, "")} {
			got, err := eventsOf(pieces...)
			if err == nil || err.Error() != want || len(got) > 1 {
				t.Errorf("%q has events %q, and says %v, want %q", stream, got, err, want)
			}
		}
	}
	var cutter eventCutter
	for range 10 {
		cutter.next([]byte("event: error\n: " + strings.Repeat("x", maxAside*3/4) + "\n"))
	}
	if n := len(cutter.comment); n > maxAside+1 {
		t.Errorf("%d bytes of comments are kept", n)
	}
}

// What is kept of an event without end is bounded.
func TestEventTooLong(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "data: tide", "data: tide\n"} {
		piece := []byte(strings.Repeat(text, 64<<10/len(text)))
		var cutter eventCutter
		fed := 0
		for fed <= 4*maxEvent {
			_, _, ok, err := cutter.next(piece)
			if fed += len(piece); errors.Is(err, errEventTooLong) {
				break
			}
			if err != nil || ok {
				t.Fatalf("%q without end: %v", text, err)
			}
		}
		if fed > 4*maxEvent || cap(cutter.line)+cap(cutter.data) > 4*maxEvent {
			t.Errorf("%q without end: %d bytes read, %d kept", text, fed, cap(cutter.line)+cap(cutter.data))
		}
	}
}

// What is passed over is not kept, nor is the room for a large event.
func TestLittleIsKept(t *testing.T) {
	t.Parallel()
	var cutter eventCutter
	large := "data: " + strings.Repeat("tide", 1<<18)
	for _, piece := range []string{strings.Repeat(": ping\n\nevent: x\n", 1<<16), "\n\n", large[:1<<19], large[1<<19:] + "\n", "\n", "data: a\n\n"} {
		for rest, ok := []byte(piece), true; ok; {
			_, rest, ok, _ = cutter.next(rest)
		}
	}
	if kept := cap(cutter.line) + cap(cutter.data); kept > 2*keepSmall {
		t.Errorf("%d bytes kept", kept)
	}
}

// An event that arrives whole takes no memory.
func TestWholeEventsAreNotCopied(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\n\r\n"} {
		var cutter eventCutter
		two := []byte("data: tide" + end + "data: tide" + end)
		if allocated := testing.AllocsPerRun(10, func() {
			for rest, ok := two, true; ok; {
				_, rest, ok, _ = cutter.next(rest)
			}
		}); allocated > 0 || cap(cutter.line)+cap(cutter.data) > 0 {
			t.Errorf("%q: %v allocations, %d bytes kept", end, allocated, cap(cutter.line)+cap(cutter.data))
		}
	}
}

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
		if want, failed := reference(stream); (err != nil) != failed || !slices.Equal(got, want) {
			t.Errorf("%q in pieces of %d has events %q, %v, want %q, failed %t", stream, int(size)+1, got, err, want, failed)
		}
	})
}
