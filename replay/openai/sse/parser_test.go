package sse

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parse returns all events of a stream that arrives in pieces.
func parse(pieces ...string) (events []string, err error) {
	var p Parser
	for _, piece := range pieces {
		b := []byte(piece)
		for {
			data, rest, ok, err := p.Next(b)
			if err != nil {
				return events, err
			}
			if !ok {
				break
			}
			events = append(events, string(data))
			b = rest
		}
		// The parser must not refer to bytes of earlier reads.
		for i := range b {
			b[i] = 'x'
		}
	}
	done, err := p.End()
	if done {
		events = append(events, Done)
	}
	return events, err
}

// reference is a slow parser of a whole stream that follows the text of the
// standard, with the same exceptions: an error ends a stream, and [DONE] needs no
// blank line.
func reference(stream string) (events []string, failed bool) {
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	lines := strings.Split(strings.ReplaceAll(stream, "\r", "\n"), "\n")
	var data []string
	for i, line := range lines {
		line = strings.TrimPrefix(line, byteOrderMark)
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(strings.TrimPrefix(value, " "), byteOrderMark)
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
		case field == "data" && (ended || value == Done):
			data = append(data, value)
		}
	}
	if len(data) == 1 && data[0] == Done && !failed {
		events = append(events, Done)
	}
	return events, failed
}

func TestEventsFollowTheStandard(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string][]string{
		"data: a\n\ndata: b\n\n":                    {"a", "b"},
		"data:a\r\rdata:b\r\n\r\n":                  {"a", "b"},
		"data: a\ndata:b\ndata\n\n":                 {"a\nb\n"},
		"data\n\n":                                  {""},
		"data:  a\n\n":                              {" a"},
		": ping\n\nevent: x\nid: 1\nretry: 3\n\n":   nil,
		"event: x\ndata: a\nid: 1\n\n":              {"a"},
		"datas: a\n\nDATA: b\n\n data: c\n\n":       nil,
		"data: a\n\ndata: half":                     {"a"},
		"data: a\n\ndata: half\n":                   {"a"},
		"data: a\n\ndata: [DONE]":                   {"a", Done},
		"data: [DONE]\n":                            {Done},
		"data: [DONE]\r":                            {Done},
		"data: a\ndata: [DONE]":                     nil,
		"data: [DONE":                               nil,
		"\n\n\r\n\ndata: a\n\n\n\n":                 {"a"},
		"data: {\"content\":\"\u2028\\n\"}\n\n":     {"{\"content\":\"\u2028\\n\"}"},
		"data: a\r\n\r\ndata: b\r\n\r\ndata: [DON":  {"a", "b"},
		"\uFEFFdata: a\n\n\uFEFFdata: b\n\n":        {"a", "b"},
		"data: \uFEFFa\n\ndata:\uFEFFb\n\n":         {"a", "b"},
		"\uFEFF\n\uFEFF: ping\n\ndata: a\n\uFEFF\n": {"a"},
		"data: \uFEFF[DONE]\n\n":                    {Done},
		"\uFEFFdata: [DONE]":                        {Done},
		"data: a\uFEFFb\n\n":                        {"a\uFEFFb"},
	} {
		got, err := parse(stream)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q has events %q, %v, want %q", stream, got, err, want)
		}
		if got, _ := reference(stream); !slices.Equal(got, want) {
			t.Errorf("by the reference %q has events %q, want %q", stream, got, want)
		}
		if got, _ := parse(strings.Split(stream, "")...); !slices.Equal(got, want) {
			t.Errorf("byte by byte %q has events %q, want %q", stream, got, want)
		}
	}
}

// Events do not depend on where the network cuts the stream.
func TestEventsDoNotDependOnCuts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.OneOf(
			rapid.SampledFrom([]string{"", "data", "data:", "data: ", "data: [DONE]", ": note", "event: x", "event: error", "error: x", "id: 1", "retry: 9", "da",
				byteOrderMark, byteOrderMark + "data: x", "data: " + byteOrderMark + "x"}),
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
		got, err := parse(pieces...)
		if want, failed := reference(stream.String()); (err != nil) != failed || !slices.Equal(got, want) {
			t.Fatalf("events %q, %v, want %q, failed %t", got, err, want, failed)
		}
	})
}

// An error event carries its data and its comments.
func TestErrorEvents(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]ErrorEvent{
		"data: a\n\nevent: error\n: gone\n\ndata: b\n\n": {"", "gone"},
		"event: error\n: gone\n: for good\n\n":           {"", "gone for good"},
		"event: error\n: gone\ndata: {}\n\n":             {"{}", "gone"},
		"event: error\ndata: {\"message\":\"gone\"}\n\n": {`{"message":"gone"}`, ""},
		"event: error\ndata: gone\ndata: for good\n\n":   {"gone\nfor good", ""},
		"event: error\n\n":                               {"", ""},
		"event:error\r\n:gone\r\n\r\n":                   {"", "gone"},
		"error: {\"code\":500}\n\ndata: [DONE]":          {`{"code":500}`, ""},
		"event: error\n: gone":                           {"", ""}, // the comment's line has not ended
		": well\nevent: error\n: gone\ndata: [DONE]":     {"", "gone"},
	} {
		for _, pieces := range [][]string{{stream}, strings.Split(stream, "")} {
			got, err := parse(pieces...)
			var event *ErrorEvent
			if !errors.As(err, &event) || *event != want || len(got) > 1 {
				t.Errorf("%q has events %q and the error %#v, want %#v", stream, got, err, want)
			}
		}
	}
	var p Parser
	for range 10 {
		p.Next([]byte("event: error\n: " + strings.Repeat("x", maxComment*3/4) + "\n"))
	}
	if n := len(p.comment); n > maxComment+1 {
		t.Errorf("%d bytes of comments are kept", n)
	}
}

// The buffer of an unfinished event is bounded.
func TestEventTooLong(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	for _, text := range []string{"x", "data: tide", "data: tide\n"} {
		piece := []byte(strings.Repeat(text, 64<<10/len(text)))
		var p Parser
		fed := 0
		for fed <= 4*maxEvent {
			_, _, ok, err := p.Next(piece)
			if fed += len(piece); errors.Is(err, ErrTooLong) {
				break
			}
			if err != nil || ok {
				t.Fatalf("%q without end: %v", text, err)
			}
		}
		if fed > 4*maxEvent || cap(p.line)+cap(p.data) > 4*maxEvent {
			t.Errorf("%q without end: %d bytes read, %d kept", text, fed, cap(p.line)+cap(p.data))
		}
	}
}

// Neither ignored fields nor the buffer of a large event are kept.
func TestBuffersAreReleased(t *testing.T) {
	t.Parallel()
	var p Parser
	large := "data: " + strings.Repeat("tide", 1<<18)
	for _, piece := range []string{strings.Repeat(": ping\n\nevent: x\n", 1<<16), "\n\n", large[:1<<19], large[1<<19:] + "\n", "\n", "data: a\n\n"} {
		for rest, ok := []byte(piece), true; ok; {
			_, rest, ok, _ = p.Next(rest)
		}
	}
	if kept := cap(p.line) + cap(p.data); kept > 2*keepBuffer {
		t.Errorf("%d bytes kept", kept)
	}
}

// An event that arrives in one piece is not copied.
func TestWholeEventsAreNotCopied(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\n\r\n"} {
		var p Parser
		two := []byte("data: tide" + end + "data: tide" + end)
		if allocated := testing.AllocsPerRun(10, func() {
			for rest, ok := two, true; ok; {
				_, rest, ok, _ = p.Next(rest)
			}
		}); allocated > 0 || cap(p.line)+cap(p.data) > 0 {
			t.Errorf("%q: %v allocations, %d bytes kept", end, allocated, cap(p.line)+cap(p.data))
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\r\n\r\n: ping\n\ndata: b\ndata:c\r\rdata: [DONE]", uint8(3))
	f.Add("data\n\nid: 1\ndata: x\n\ndata: half", uint8(1))
	f.Add("data: [DONE]\r\n\r", uint8(12))
	f.Add("\uFEFFdata: a\n\ndata: \uFEFF[DONE]\n\n", uint8(3))
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		var pieces []string
		for rest := stream; rest != ""; {
			n := min(int(size)+1, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, err := parse(pieces...)
		if want, failed := reference(stream); (err != nil) != failed || !slices.Equal(got, want) {
			t.Errorf("%q in pieces of %d has events %q, %v, want %q, failed %t", stream, int(size)+1, got, err, want, failed)
		}
	})
}

// feed passes b to a parser and returns the number of events.
func feed(p *Parser, b []byte) (events int, err error) {
	for rest, ok := b, true; ok; {
		if _, rest, ok, err = p.Next(rest); ok {
			events++
		}
	}
	return events, err
}

func held(parsers []*Parser) (bytes int) {
	for _, p := range parsers {
		bytes += cap(p.line) + cap(p.data) + cap(p.comment)
	}
	return bytes
}

// Many endless lines take little more than the budget in total, however they grow.
// Those that exceed their share fail; a stream beside them with events of any usual
// size does not.
func TestBudget(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	const streams, rounds = 150, 48 // 110 MiB
	for name, text := range map[string]string{"a line": "data: tide", "data lines": "data: " + strings.Repeat("tide", 250) + "\n"} {
		var budget Budget
		var parsers []*Parser
		for range streams {
			parsers = append(parsers, &Parser{Budget: &budget})
		}
		good := &Parser{Budget: &budget}
		piece := []byte(strings.Repeat(text, 16<<10/len(text)))
		event := []byte("data: " + strings.Repeat("tide", 8<<10) + "\n\n")
		failed, events := map[*Parser]bool{}, 0
		for range rounds {
			for _, p := range parsers {
				if failed[p] {
					continue
				}
				if _, err := feed(p, piece); errors.Is(err, ErrBudget) {
					failed[p] = true
					p.Release()
				} else if err != nil {
					t.Fatal(err)
				}
			}
			half := len(event) / 2
			for _, part := range [][]byte{event[:half], event[half:]} {
				n, err := feed(good, part)
				if events += n; err != nil {
					t.Fatalf("%s: a good stream fails: %v", name, err)
				}
			}
			if n := held(parsers); n > 2*maxBudget {
				t.Fatalf("%s: %d bytes are buffered", name, n)
			}
		}
		if len(failed) == 0 || len(failed) == streams || events != rounds {
			t.Errorf("%s: %d of %d streams exceed the budget; %d good events", name, len(failed), streams, events)
		}
		for _, p := range append(parsers, good) {
			p.Release()
		}
		if bytes, n := budget.bytes.Load(), budget.parsers.Load(); bytes != 0 || n != 0 {
			t.Errorf("%s: at the end %d bytes of %d parsers are charged", name, bytes, n)
		}
	}
}

// The charge always equals the buffered bytes.
func TestBudgetIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var budget Budget
		parsers := []*Parser{{Budget: &budget}, {Budget: &budget}, {Budget: &budget}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			p := rapid.SampledFrom(parsers).Draw(t, "parser")
			if rapid.IntRange(0, 9).Draw(t, "release") == 0 {
				p.Release()
				p.Budget = &budget
				continue
			}
			text := strings.Repeat("tide", rapid.IntRange(0, 50_000).Draw(t, "size")) + rapid.SampledFrom([]string{"", "\n", "\n\n", "\n\ndata: "}).Draw(t, "end")
			if _, err := feed(p, []byte("data: "+text)); err != nil {
				t.Fatal(err)
			}
			want := 0
			for _, p := range parsers {
				if size := held([]*Parser{p}); size > freeBuffer {
					want += size
				}
			}
			if got := budget.bytes.Load(); got != int64(want) {
				t.Fatalf("%d bytes are charged, %d are buffered", got, want)
			}
		}
	})
}
