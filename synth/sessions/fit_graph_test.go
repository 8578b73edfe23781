package sessions_test

import (
	"fmt"
	"strings"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// A sub-agent's first request has no timestamp and no turn before it: it follows the
// request that called it.
func TestFitOfSubAgents(t *testing.T) {
	var rows []trace.Request
	for i := range 10 {
		agent, block := fmt.Sprint("a", i), uint64(10*i)
		rows = append(rows,
			trace.Request{Timestamp: trace.Some(float64(1000 * i)), SessionID: agent, ID: agent, InputLength: 512, OutputLength: 5, HashIDs: []uint64{block}},
			trace.Request{After: []string{agent}, Delay: trace.Some(20.0), SessionID: agent + "/x", InputLength: 512, OutputLength: 5, HashIDs: []uint64{block + 1}})
	}
	if _, err := sessions.Fit(trace.FromSlice(rows), sessions.Options{}); err != nil {
		t.Error(err)
	}
	rows[0], rows[1] = rows[1], rows[0]
	if _, err := sessions.Fit(trace.FromSlice(rows), sessions.Options{}); err == nil || !strings.Contains(err.Error(), `no earlier row is named in after ["a0"]`) {
		t.Errorf("error %v for a row before the one that it waits for", err)
	}
	rows[0], rows[1] = rows[1], rows[0]
	rows[1].After = nil
	if _, err := sessions.Fit(trace.FromSlice(rows), sessions.Options{}); err == nil {
		t.Error("a row that follows none is accepted")
	}
}
