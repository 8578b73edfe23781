package sessions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// Two recorded conversations are too few to learn parts of their own from, but they do
// not fall apart: drawn ones start together and have several turns, which wait and whose
// prompts grow as in the source.
func TestFewConversations(t *testing.T) {
	t.Parallel()
	var rows []trace.Request
	var id uint64
	for i := range 2 {
		var ids []uint64
		for turn := range 3 {
			for range 60 + 60*indicator(turn == 0) {
				id++
				ids = append(ids, id)
			}
			r := trace.Request{SessionID: fmt.Sprint("c", i), InputLength: len(ids) * agentBlock, OutputLength: 50 + 10*turn, HashIDs: ids}
			if turn == 0 {
				r.Timestamp = trace.Some(0.0)
			} else {
				r.Delay, r.DelayKind = trace.Some(float64(3000+1000*turn)), trace.Tool
			}
			rows = append(rows, r)
		}
	}
	m := fit(t, rows, sessions.Options{BlockSize: agentBlock})
	for _, note := range []string{"few sessions: ", "4 later turns: "} {
		if !strings.Contains(strings.Join(m.Notes(), "\n"), note) {
			t.Errorf("no note %q in %q", note, m.Notes())
		}
	}
	drawn := draw(t, m, 1, 3000)
	starts, together, growth, before := 0, 0, 0.0, map[string]trace.Request{}
	at := map[float64]int{}
	for _, r := range drawn {
		if p, later := before[r.SessionID]; later {
			growth += float64(r.InputLength-p.InputLength) / float64(len(drawn))
			if r.Delay.Value < 1000 || r.Delay.Value > 20_000 || r.DelayKind != trace.Tool {
				t.Errorf("a delay of %v ms for %q", r.Delay.Value, r.DelayKind)
			}
		} else {
			starts++
			if at[r.Timestamp.Value]++; at[r.Timestamp.Value] == 2 {
				together++
			}
		}
		before[r.SessionID] = r
	}
	if turns := float64(len(drawn)) / float64(starts); turns < 2.2 || turns > 3.1 {
		t.Errorf("%.2f turns a session, want 3, or fewer as the source's end cuts them off", turns)
	}
	if 2*together < starts-2 {
		t.Errorf("%d of %d sessions start in pairs", 2*together, starts)
	}
	if want := 2.0 / 3 * 60 * agentBlock; growth < .5*want || growth > 1.4*want {
		t.Errorf("prompts grow by %.0f tokens, want %.0f", growth, want)
	}
}

// Few sessions start about as often as in the source, and with prompts of about its mean
// length, however many turns the longest has.
func TestFewSessionsOfOneLength(t *testing.T) {
	t.Parallel()
	var rows []trace.Request
	for i, turns := range []int{1, 12} {
		for turn := range turns {
			r := trace.Request{SessionID: fmt.Sprint("c", i), InputLength: 100 + 3900*i + 500*turn + turn*turn%7*90, OutputLength: 50}
			if turn == 0 {
				r.Timestamp = trace.Some(float64(i) * 10_000)
			} else {
				r.Delay = trace.Some(20_000.0)
			}
			rows = append(rows, r)
		}
	}
	m := fit(t, rows, sessions.Options{})
	const want, seeds = 2050.0, 20
	starts, tokens := 0, 0
	for seed := range uint64(seeds) {
		for _, r := range draw(t, m, seed, len(rows)) {
			if r.Timestamp.Set {
				starts++
				tokens += r.InputLength
			}
		}
	}
	if mean := float64(tokens) / float64(starts); mean < .75*want || mean > 1.25*want {
		t.Errorf("first prompts have %.0f tokens, want about %.0f", mean, want)
	}
	if perTrace := float64(starts) / seeds; perTrace < 1.5 || perTrace > 3 {
		t.Errorf("%.1f sessions a trace, want 2", perTrace)
	}
}

// Where a partial last block keeps its id when the prompt is extended, it does so in what
// is drawn; elsewhere, it gets another one.
func TestPartialBlocks(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{true, false} {
		var rows []trace.Request
		var id uint64
		for i := range 60 {
			var ids []uint64
			for turn := range 4 {
				isl := (2+turn)*agentBlock - 5
				if !keeps && turn > 0 {
					ids = ids[:len(ids)-1]
				}
				for len(ids) < 2+turn {
					id++
					ids = append(ids, id)
				}
				rows = append(rows, trace.Request{Timestamp: trace.Some(float64(1000 * (10*i + turn))), InputLength: isl, OutputLength: 5, HashIDs: slices.Clone(ids)})
			}
		}
		later, kept := 0, 0
		var before []uint64
		for _, r := range draw(t, fit(t, rows, sessions.Options{BlockSize: agentBlock}), 1, len(rows)) {
			if n := len(before); n > 0 && len(r.HashIDs) > n && r.HashIDs[0] == before[0] {
				later++
				kept += indicator(r.HashIDs[n-1] == before[n-1])
			}
			before = r.HashIDs
		}
		if later < 100 || kept != later*indicator(keeps) {
			t.Errorf("ids are kept: %t; %d of %d drawn ones are", keeps, kept, later)
		}
	}
}

// No answer of 0 tokens is drawn if the source has none.
func TestFewAnswersAreNotEmpty(t *testing.T) {
	t.Parallel()
	var rows []trace.Request
	for i, osl := range []int{1, 3, 500, 700, 900, 1100} {
		rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i * i)), InputLength: 100 * (i + 1), OutputLength: osl})
	}
	for _, r := range draw(t, fit(t, rows, sessions.Options{}), 1, 1000) {
		if r.OutputLength < 1 {
			t.Fatalf("an answer of %d tokens", r.OutputLength)
		}
	}
}

// Conversations cannot be found by prefixes where a sliding window cuts them off. This
// is noted, unless rows have session ids.
func TestSlidingWindow(t *testing.T) {
	const window = 8
	for _, named := range []bool{false, true} {
		var rows []trace.Request
		for i := range 60 {
			r := trace.Request{Timestamp: trace.Some(float64(i) * 1000), InputLength: window * agentBlock, OutputLength: 50}
			for block := range uint64(window) { // a hash of another prefix in each turn
				r.HashIDs = append(r.HashIDs, uint64(i)<<8|block)
			}
			if named {
				r.SessionID = fmt.Sprint("c", i%6)
			}
			rows = append(rows, r)
		}
		notes := strings.Join(fit(t, rows, sessions.Options{BlockSize: agentBlock}).Notes(), "\n")
		if noted := strings.Contains(notes, "no prompt extends an earlier one: "); noted == named {
			t.Errorf("with session ids: %t, noted: %t", named, noted)
		}
	}
}
