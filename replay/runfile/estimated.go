package runfile

import (
	"bytes"
	"strings"

	"moontide/replay"
)

// ISLEstimated reports whether the prompt is a text of the trace whose length
// in tokens the reader of the trace could only estimate, so that the server's
// count of it proves nothing. A prompt that is made up has the ISL, however
// that was come by.
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
