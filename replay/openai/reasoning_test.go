package openai

import (
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1/http1test"
)

// An outcome tells the first visible token only if it arrived after reasoning, and
// an answer of reasoning alone from one without.
func TestReasoningOutcome(t *testing.T) {
	const (
		hm   = `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}` + "\n\n"
		says = `data: {"choices":[{"index":0,"delta":{"content":" tide"}}]}` + "\n\n"
		both = `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","content":" tide"}}]}` + "\n\n"
		call = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]}}]}` + "\n\n"
	)
	for name, test := range map[string]struct {
		pieces  []string      // read a second apart
		visible time.Duration // after the first token
		only    bool
	}{
		"no reasoning":               {[]string{role, says, says}, 0, false},
		"reasoning first":            {[]string{role, hm, hm, says, says}, 2 * time.Second, false},
		"reasoning again":            {[]string{hm, says, hm, says}, time.Second, false},
		"reasoning, then a tool":     {[]string{hm, call}, time.Second, false},
		"reasoning alone":            {[]string{hm, hm, finish}, 0, true},
		"reasoning after text":       {[]string{says, hm}, 0, false},
		"both in one chunk":          {[]string{both, says}, 0, false},
		"both in one read":           {[]string{hm + says, says}, 0, false},
		"a finish reason in the end": {[]string{hm, hm, says, finish}, 2 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &http1test.Script{OnRead: func(int) { time.Sleep(time.Second) }}
				s.Pieces = append(s.Pieces, streamed)
				for _, piece := range test.pieces {
					s.Pieces = append(s.Pieces, inChunk(piece))
				}
				s.Pieces = append(s.Pieces, inChunk(theEnd)+lastChunk)
				o := prepare(t, scripted(t, s, func(cfg *Config) { cfg.Endpoint = Chat }), row).Send(t.Context())
				wantClass(t, o, replay.OK, "")
				visible := time.Duration(0)
				if !o.FirstVisible.IsZero() {
					visible = o.FirstVisible.Sub(o.First)
				}
				if visible != test.visible || o.ReasoningOnly != test.only {
					t.Errorf("visible after %v, reasoning only: %v", visible, o.ReasoningOnly)
				}
			})
		})
	}
}
