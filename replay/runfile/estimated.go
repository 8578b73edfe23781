package runfile

import (
	"bytes"
	"strings"

	"moontide/replay"
)

// ISLEstimated reports whether the prompt is text from the trace with an estimated
// ISL, which cannot be compared with the server's count. Generated prompts have
// exactly the ISL of their row.
func ISLEstimated(r *replay.Record) bool {
	if !bytes.Contains(r.Extra, []byte(`"estimated"`)) {
		return false
	}
	if lengths, _ := r.Raw("estimated"); !strings.Contains(lengths, `"input_length"`) {
		return false
	}
	for key, digest := range textKeys {
		if _, ok := r.Raw(key); ok {
			return true
		}
		if _, ok := r.Raw(digest); ok {
			return true
		}
	}
	return false
}
