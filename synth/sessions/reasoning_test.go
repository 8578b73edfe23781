package sessions_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// reasoningOf returns the share of an answer that is reasoning.
func reasoningOf(t *testing.T, r *trace.Request, key string) float64 {
	raw, ok := r.Raw(key)
	tokens, err := strconv.Atoi(raw)
	if !ok || err != nil || tokens > r.OutputLength {
		t.Fatalf("row with an OSL of %d has %s", r.OutputLength, r.Extra)
	}
	return float64(tokens) / float64(r.OutputLength)
}

// Sessions that reason and sessions that do not stay apart, and so does visible
// output.
func TestReasoning(t *testing.T) {
	rows := mixed(loads[:1])
	thinks := func(id string) bool { n, _ := strconv.Atoi(id); return n%3 == 0 }
	for i := range rows {
		r := &rows[i]
		tokens := 0
		if thinks(r.SessionID) {
			tokens = r.OutputLength * (60 + i%30) / 100
		}
		r.Extra = fmt.Appendf(nil, `{"model": "m", "reasoning_tokens": %d}`, tokens)
	}
	m := fit(t, rows, sessions.Options{})
	mean := func(rows []trace.Request) (share, changes float64) {
		before := make(map[string]float64)
		for i := range rows {
			r := &rows[i]
			s := reasoningOf(t, r, "reasoning_tokens")
			share += s / float64(len(rows))
			if b, ok := before[r.SessionID]; ok && (b > 0) != (s > 0) {
				changes++
			}
			before[r.SessionID] = s
			if model, _ := r.Text("model"); model != "m" {
				t.Fatalf("row has %s", r.Extra)
			}
		}
		return share, changes / float64(len(rows))
	}
	want, _ := mean(rows)
	got, changes := mean(draw(t, m, 1, len(rows)))
	if math.Abs(got-want) > .03 || changes > .02 {
		t.Errorf("the share of reasoning is %.3f, want %.3f; %.3f of the turns change it", got, want, changes)
	}
}

// Reasoning in the object recorded stays there.
func TestRecordedReasoning(t *testing.T) {
	rows := mixed(loads[:1])
	for i := range rows {
		rows[i].Extra = fmt.Appendf(nil, `{"recorded": {"reasoning_output_tokens": %d, "type": "text"}}`, rows[i].OutputLength/2)
		if i%10 == 0 {
			rows[i].Extra = []byte(`{"recorded": {"reasoning_output_tokens": null, "type": "text"}}`)
		}
	}
	for _, r := range draw(t, fit(t, rows, sessions.Options{}), 1, 10) {
		var tokens int
		if _, err := fmt.Sscanf(string(r.Extra), `{"recorded": {"type": "text", "reasoning_output_tokens": %d}}`, &tokens); err != nil || tokens > r.OutputLength {
			t.Errorf("row with an OSL of %d has %s: %v", r.OutputLength, r.Extra, err)
		}
	}
}

// Reasoning that is no part of the answer is ignored, with a note.
func TestBadReasoning(t *testing.T) {
	rows := mixed(loads[:1])
	for i := range rows {
		rows[i].Extra = fmt.Appendf(nil, `{"reasoning_tokens": %d}`, rows[i].OutputLength/2)
	}
	rows[4].Extra = []byte(`{"reasoning_tokens": -3}`)
	for i := 10; i < len(rows); i += 2 {
		rows[i].Extra = fmt.Appendf(nil, `{"reasoning_tokens": %d}`, rows[i].OutputLength+1)
	}
	m := fit(t, rows, sessions.Options{})
	want := fmt.Sprintf("the reasoning of %d of %d requests is ignored, first reasoning_tokens of request 5: -3 is not a number of tokens from 0 to %d", 1+(len(rows)-9)/2, len(rows), rows[4].OutputLength)
	if !slices.Contains(m.Notes(), want) {
		t.Errorf("no note %q in %q", want, m.Notes())
	}
	for _, r := range draw(t, m, 1, 100) {
		if share := reasoningOf(t, &r, "reasoning_tokens"); r.OutputLength > 10 && share > .6 {
			t.Errorf("row with an OSL of %d has %s", r.OutputLength, r.Extra)
		}
	}
}
