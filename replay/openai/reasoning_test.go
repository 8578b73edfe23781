package openai

import (
	"io"
	"testing"
	"time"
)

// An outcome tells the first visible token only if it arrived after reasoning, and
// an answer of reasoning alone from one without.
func TestReasoningOutcome(t *testing.T) {
	t.Parallel()
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
		"responses":                  {[]string{responsesReasoning, responsesReasoning, responsesToken}, 2 * time.Second, false},
		"messages":                   {[]string{messagesReasoning, messagesToken, messagesToken}, time.Second, false},
	} {
		pieces := [][]byte{[]byte(streamed)}
		for _, piece := range test.pieces {
			pieces = append(pieces, []byte(inChunk(piece)))
		}
		a := fed(pieces, io.EOF)
		visible, only := time.Duration(0), a.stream.visible.IsZero()
		if !only {
			visible = a.stream.visible.Sub(a.stream.first)
		}
		if visible != test.visible || only != test.only {
			t.Errorf("%s: visible after %v, reasoning only: %v", name, visible, only)
		}
	}
}
