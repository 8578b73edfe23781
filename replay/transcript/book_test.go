package transcript_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// A book holds the answers that prompts in progress continue, and nothing else; at the
// end of a run it is empty.
func TestBookKeepsWhatIsNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []trace.Request
		for i := range rapid.IntRange(1, 12).Draw(t, "rows") {
			r := trace.Request{ID: fmt.Sprint(i), InputLength: 10 * (i + 1), SessionID: rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "session")}
			for block := range i + 1 {
				r.HashIDs = append(r.HashIDs, uint64(block))
			}
			if i > 0 && rapid.Bool().Draw(t, "explicit") {
				r.After = []string{}
				for range rapid.IntRange(0, 3).Draw(t, "edges") {
					r.After = append(r.After, fmt.Sprint(rapid.IntRange(0, i-1).Draw(t, "before")))
				}
			}
			rows = append(rows, r)
		}
		graph := tracetest.Graph(t, rows...)
		book := transcript.NewBook[int](graph, 10, 1<<20)
		for i, r := range rows {
			if rapid.IntRange(0, 9).Draw(t, "is skipped") == 0 {
				book.Drop(i)
				continue
			}
			e := book.Open(r, i)
			for base := e.Base; base != nil; base = base.Base {
				if base.Answer != base.Prompt.Row+1 || base.Generated.Tokens != 3 {
					t.Fatalf("row %d continues row %d, whose answer is %d", i, base.Prompt.Row, base.Answer)
				}
			}
			for s := range e.Prompt.Segments() {
				if s.Kind == transcript.Reply && e.Find(int(s.ID)) == nil {
					t.Fatalf("row %d holds the answer to row %d, which is gone", i, s.ID)
				}
			}
			if book.Open(r, i) != e {
				t.Fatal("opened again, a row has another entry")
			}
			if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
				book.Drop(i)
			} else if err := book.End(i, transcript.Generated{Tokens: 3}, i+1, 7); err != nil {
				t.Fatal(err)
			}
		}
		if book.Len() != 0 || book.Kept() != 0 {
			t.Fatalf("%d rows and %d bytes are left", book.Len(), book.Kept())
		}
	})
}

func TestBookIsBounded(t *testing.T) {
	rows := []trace.Request{row(20, 1, 2), row(40, 1, 2, 3, 4), {SessionID: "t", InputLength: 5}, {SessionID: "t", InputLength: 9}}
	book := transcript.NewBook[string](tracetest.Graph(t, rows...), 10, 100)
	book.Open(rows[0], 0)
	book.Open(rows[2], 2)
	if err := book.End(0, transcript.Generated{Tokens: 1}, "a", 60); err != nil {
		t.Fatal(err)
	}
	var tooMany *transcript.TooManyError
	if err := book.End(2, transcript.Generated{Tokens: 1}, "b", 41); !errors.As(err, &tooMany) || book.Kept() != 60 {
		t.Fatalf("error %v, %d kept", err, book.Kept())
	}
	if e := book.Open(rows[3], 3); e.Base != nil {
		t.Error("a dropped answer is continued")
	}
	if e := book.Open(rows[1], 1); e.Base == nil || e.Base.Answer != "a" || e.Turn.Answer != 1 {
		t.Errorf("entry %+v", e)
	}
}
