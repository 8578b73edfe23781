package runfile_test

import (
	"testing"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

func TestISLEstimated(t *testing.T) {
	for extra, want := range map[string]bool{
		``:                                false,
		`{"text_input": "a"}`:             false,
		`{"estimated": ["input_length"]}`: false, // the prompt is generated
		`{"estimated": ["input_length"], "text_input": "a"}`:            true,
		`{"estimated": ["input_length"], "text_input_sha256": "a"}`:     true,
		`{"messages_sha256": "a", "estimated": ["input_length"]}`:       true,
		`{"messages": [], "estimated": ["output_length"]}`:              false,
		`{"text_input": "\"estimated\": [\"input_length\"]"}`:           false,
		`{"recorded": {"estimated": ["input_length"]}, "messages": []}`: false,
	} {
		rec := replay.Record{Request: trace.Request{Extra: []byte(extra)}}
		if got := runfile.ISLEstimated(&rec); got != want {
			t.Errorf("%s: %v", extra, got)
		}
	}
}
