package jsonscan

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bytedance/sonic"
	"pgregory.net/rapid"
)

// texts holds JSON of every kind, and text that is nearly JSON.
var texts = []string{
	`{}`, `[]`, `null`, `true`, `"a\"b\\"`, ` { "a" : [ 1 , -2.5e+3 , {"b": "}]" } ] , "c\u0064" : null } `,
	`{"x":01}`, `{"x":1.}`, `{"x":-}`, `{"x":1e}`, `{"x":"\`, `[1,]`, `[1 2]`, `{"a":1,}`, `{"a"}`, `{a:1}`, `nul`, ``, ` `, "\x00", `{"a":1}}`,
	strings.Repeat("[", 10) + strings.Repeat("]", 10), strings.Repeat("[", 30) + strings.Repeat("]", 30),
}

func damaged(t *rapid.T) []byte {
	text := []byte(rapid.SampledFrom(texts).Draw(t, "text"))
	for range rapid.IntRange(0, 2).Draw(t, "changes") {
		if len(text) > 0 {
			text[rapid.IntRange(0, len(text)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("{}[]\",:\\ 0-.eEtfn\n")).Draw(t, "byte")
		}
	}
	return text
}

// TestSkip: except for the contents of strings, Skip accepts exactly the valid
// JSON that is not nested too deeply.
func TestSkip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := damaged(t)
		c := New(text)
		c.Skip()
		valid := json.Valid(text)
		tooDeep := strings.Count(string(text), "[") > MaxDepth
		strange := strings.ContainsAny(string(text), "\\\n")
		if c.Done() != valid && !tooDeep && !strange {
			t.Fatalf("%q: Skip accepts it: %v, json.Valid: %v", text, c.Done(), valid)
		}
	})
}

// TestRawAndWalks: on valid JSON, Raw and the walks agree with encoding/json.
func TestRawAndWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := damaged(t)
		if !json.Valid(text) {
			c := New(text)
			c.Raw() // must terminate
			return
		}
		c := New(text)
		if raw := c.Raw(); !c.Done() || string(raw) != strings.Trim(string(text), " \n") {
			t.Fatalf("%q: Raw is %q", text, raw)
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) == nil && members != nil {
			n := 0
			err := Members(text, func(key []byte, at int, raw []byte) error {
				n++
				if string(members[string(key)]) != string(raw) || string(text[at:at+len(raw)]) != string(raw) {
					t.Fatalf("%q: member %q is %q at %d", text, key, raw, at)
				}
				return nil
			})
			if _, twice := err.(DuplicateKeyError); !twice && (err != nil || n != len(members)) {
				t.Fatalf("%q: %d members, %v", text, n, err)
			}
		}
		var elements []json.RawMessage
		if json.Unmarshal(text, &elements) == nil {
			n := 0
			Elements(text, func(at int, raw []byte) error {
				if string(elements[n]) != string(raw) || string(text[at:at+len(raw)]) != string(raw) {
					t.Fatalf("%q: element %d is %q at %d", text, n, raw, at)
				}
				n++
				return nil
			})
			if n != len(elements) {
				t.Fatalf("%q: %d elements, want %d", text, n, len(elements))
			}
		}
	})
}

func TestDuplicateKeys(t *testing.T) {
	object := `{"a": 1`
	for i := range 50 {
		object += `, "` + strconv.Itoa(i) + `": 1`
	}
	visit := func([]byte, int, []byte) error { return nil }
	for end, key := range map[string]string{`}`: "", `, "a": 2}`: "a", `, "\u0061": 2}`: "a", `, "40": 2}`: "40"} {
		err := Members([]byte(object+end), visit)
		if twice, ok := err.(DuplicateKeyError); ok != (key != "") || twice.Key != key {
			t.Errorf("%s: %v", end, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "7": "7", "-0": "0", "1.50": "1.5", "-12.25": "-12.25", "123456789012345.5": "123456789012345.5",
		"01": "", "1.": "", ".5": "", "-": "", "1e3": "", "": "", "1234567890123456789": "", "1.2.3": "", "+1": "", "- 1": "",
	} {
		c := New([]byte(text))
		n, places := c.Decimal()
		got := ""
		if c.Done() {
			got = strconv.FormatFloat(float64(n)/Pow10[places], 'f', -1, 64)
		}
		if got != want {
			t.Errorf("decimal %q is %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]uint64{
		"0": 0, "12345678": 12345678, "18446744073709551615": math.MaxUint64, "12345678901234567": 12345678901234567,
		"18446744073709551616": 1, "00": 1, "-1": 1, "1.0": 1, "99999999999999999999999999999999": 1, "": 1,
	} {
		c := New([]byte(text))
		if n := c.Uint(); c.Done() != (want != 1) || c.Done() && n != want {
			t.Errorf("integer %q is %d, accepted: %v", text, n, c.Done())
		}
	}
}

// TestUints: consecutive numbers, which are read by comparing text, agree with
// encoding/json for any spacing or damage.
func TestUints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for range rapid.IntRange(0, 4).Draw(t, "runs") {
			first := rapid.OneOf(rapid.Uint64Range(0, 1200), rapid.Uint64Range(9_999_900, 10_000_100), rapid.Uint64()).Draw(t, "first")
			between := rapid.SampledFrom([]string{", ", ",", ",  ", " , "}).Draw(t, "between")
			for i := range rapid.Uint64Range(1, 100).Draw(t, "length") {
				if text != nil {
					text = append(text, between...)
				}
				text = strconv.AppendUint(text, first+i, 10)
			}
		}
		text = append(append([]byte{'['}, text...), ']')
		if rapid.Bool().Draw(t, "damage") {
			text[rapid.IntRange(0, len(text)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		var want []uint64
		err := json.Unmarshal(text, &want)
		for _, most := range []int{len(want), max(0, len(want)-1), 1 << 20} {
			c := New(text)
			got := c.Uints(nil, most)
			if accepted := err == nil && want != nil && len(want) <= most; c.Done() != accepted && !strings.Contains(string(text), "null") || accepted && !slices.Equal(got, want) {
				t.Fatalf("%q, at most %d: %d, accepted: %v, want %d, %v", text, most, got, c.Done(), want, err)
			}
		}
	})
}

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
