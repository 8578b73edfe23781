package sse

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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

// The charge is what is buffered, whatever happens.
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
