package jsonscan

import (
	"encoding/json"
	"testing"

	"github.com/bytedance/sonic"
)

// An error about a text has nothing of the text but the names of keys.
func TestFault(t *testing.T) {
	type known struct {
		N int `json:"n"`
	}
	strict := sonic.Config{DisallowUnknownFields: true}.Froze()
	for text, want := range map[string][2]string{
		`secret`:                 {"invalid JSON at byte 1", "invalid JSON at byte 1"},
		`"secret"`:               {"the text has the wrong type", "the value at byte 0 has the wrong type"},
		`{"n": "secret"}`:        {"n has the wrong type", "the value at byte 6 has the wrong type"},
		`{"n": 1, "m": "secret"`: {"invalid JSON at byte 22", `unknown key "m"`},
	} {
		var v known
		for i, err := range []error{json.Unmarshal([]byte(text), &v), strict.UnmarshalFromString(text, &v)} {
			if err == nil || Fault(err).Error() != want[i] {
				t.Errorf("%s: %q, want %q (%v)", text, Fault(err), want[i], err)
			}
		}
	}
}
