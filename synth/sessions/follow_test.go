package sessions

import (
	"fmt"
	"testing"

	"moontide/trace"
)

// Rows without a timestamp arrive after the answer before them and their delay, but
// between the timestamps around them in the file, if most do anyway.
func TestRowsWithoutTimestamp(t *testing.T) {
	for _, c := range []struct {
		name         string
		others       int
		delay, wants float64
	}{
		{"as taken", 5, 500, 1100 + 500},
		{"the file says earlier", 5, 9000, 2000},
		{"the file is in no order", 0, 9000, 1100 + 9000},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFitter()
			add := func(r trace.Request) {
				t.Helper()
				r.InputLength, r.OutputLength = 700, 31 // an answer of 1100 ms
				if err := f.add(r); err != nil {
					t.Fatal(err)
				}
			}
			add(trace.Request{SessionID: "a", Timestamp: trace.Some(0.0)})
			add(trace.Request{SessionID: "a", Delay: trace.Some(c.delay)})
			add(trace.Request{SessionID: "b", Timestamp: trace.Some(2000.0)})
			for i := range c.others {
				at := 2000 + 10_000*float64(i)
				name := fmt.Sprint(i)
				add(trace.Request{SessionID: name, Timestamp: trace.Some(at)})
				add(trace.Request{SessionID: name, Delay: trace.Some(10.0)})
			}
			if err := f.prepareRows(512); err != nil {
				t.Fatal(err)
			}
			for _, r := range f.rows {
				if r.delay == c.delay && r.at != c.wants {
					t.Errorf("arrival at %v ms, want %v", r.at, c.wants)
				}
			}
		})
	}
}

// A few sessions have a long template and the others have long prompts of their
// own: drawn prompts must not combine both.
func TestTemplatesStayApart(t *testing.T) {
	f := newFitter()
	ids := uint64(1000)
	for i := range 130 {
		r := trace.Request{Timestamp: trace.Some(float64(i) * 5000), OutputLength: 50}
		if i%4 == 0 { // a document of 60,000 tokens that many ask about
			for b := range uint64(60) {
				r.HashIDs = append(r.HashIDs, b)
			}
			r.InputLength = 60_000 + 1 + i
		} else {
			r.InputLength = 20_000 + 500*i
		}
		for len(r.HashIDs) < (r.InputLength+999)/1000 {
			ids++
			r.HashIDs = append(r.HashIDs, ids)
		}
		if err := f.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.prepareRows(1000); err != nil {
		t.Fatal(err)
	}
	m := f.model(0)
	if m.Templates() != 1 {
		t.Fatalf("%d templates", m.Templates())
	}
	for r, err := range m.Requests(1, 2000) {
		if err != nil {
			t.Fatal(err)
		}
		if templated := r.HashIDs[0] == m.firstFree-60; templated && r.InputLength > 60_300 {
			t.Fatalf("%d tokens with the template, want no more than 60,130 or so", r.InputLength)
		}
	}
}
