package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// nativeKey is a key of the native format. parse parses its value into a row.
type nativeKey struct {
	name  string
	parse func(raw []byte, r *trace.Request) error
}

// native returns a key whose value is that of a field.
func native[T any](name string, parse func(raw []byte) (T, error), field func(r *trace.Request) *T) nativeKey {
	return nativeKey{name, func(raw []byte, r *trace.Request) (err error) {
		*field(r), err = parse(raw)
		return err
	}}
}

// nativeKeys are in the order in which they are written. The input length bounds hash_ids,
// which have no parser here.
var nativeKeys = []nativeKey{
	native("timestamp", some(parseMilliseconds), func(r *trace.Request) *trace.Opt[float64] { return &r.Timestamp }),
	native("input_length", parseLength, func(r *trace.Request) *int { return &r.InputLength }),
	native("output_length", parseLength, func(r *trace.Request) *int { return &r.OutputLength }),
	{name: "hash_ids"},
	native("session_id", parseString, func(r *trace.Request) *string { return &r.SessionID }),
	native("request_id", parseString, func(r *trace.Request) *string { return &r.ID }),
	native("after", parseAfter, func(r *trace.Request) *[]string { return &r.After }),
	native("delay", some(parseMilliseconds), func(r *trace.Request) *trace.Opt[float64] { return &r.Delay }),
	native("delay_kind", parseDelayKind, func(r *trace.Request) *trace.DelayKind { return &r.DelayKind }),
	native("context_len", some(parseLength), func(r *trace.Request) *trace.Opt[int] { return &r.ContextLen }),
	native("unique_user_prompt_len", some(parseLength), func(r *trace.Request) *trace.Opt[int] { return &r.UniquePromptLen }),
}

// aliases are other names of native keys. One is used only if the row has no value under
// the key itself: a result line has both input_length and the server's input_tokens.
var aliases = map[string]string{"created_time": "timestamp", "input_tokens": "input_length", "output_tokens": "output_length", "delay_ms": "delay"}

// numberOf returns the number of a native key, or -1.
func numberOf[T string | []byte](key T) int {
	return slices.IndexFunc(nativeKeys, func(k nativeKey) bool { return k.name == string(key) })
}

// ParseRow parses one line of a native trace, a JSON object, into r. It reuses
// the array of r.HashIDs. After an error the contents of r are undefined.
func ParseRow(line []byte, r *trace.Request) error {
	ids := r.HashIDs
	if parseCanonical(line, r) {
		return nil
	}
	r.HashIDs = ids
	return parseAny(line, r)
}

// parseCanonical parses a row in the form that all writers of this format use:
// canonical keys, plain numbers, no escapes. It is the hot path of every command.
// It returns false for any other row, which parseAny parses.
func parseCanonical(line []byte, r *trace.Request) bool {
	ids := r.HashIDs[:0]
	*r = trace.Request{}
	c := jsonscan.New(line)
	var seen uint32 // bits of the keys that were read
	var input, output bool
	var early jsonscan.Cursor // at ids that precede the length that bounds them
	last := -1                // the key before
	for more := c.Open('{'); more; more = c.More('}') {
		if last++; last == len(nativeKeys) || !c.KeyIs(nativeKeys[last].name) { // most rows have the order of nativeKeys
			last = numberOf(c.Key())
		}
		if last < 0 {
			return false
		}
		c.Once(&seen, 1<<last)
		switch nativeKeys[last].name {
		case "timestamp":
			r.Timestamp = milliseconds(&c)
		case "input_length":
			r.InputLength, input = c.Int(trace.MaxLength), true
		case "output_length":
			r.OutputLength, output = c.Int(trace.MaxLength), true
		case "hash_ids":
			if early = c; input {
				r.HashIDs = c.Uints(ids, maxIDs(r.InputLength))
			} else {
				c.Raw()
			}
		case "session_id":
			r.SessionID = string(c.PlainText())
		case "request_id":
			r.ID = string(c.PlainText())
		case "after":
			if raw := c.Raw(); !utf8.Valid(raw) || !json.Valid(raw) || nativeKeys[last].parse(raw, r) != nil {
				c.Fail()
			}
		case "delay":
			r.Delay = milliseconds(&c)
		case "delay_kind":
			if r.DelayKind = pauses[string(c.PlainText())]; r.DelayKind == "" {
				c.Fail()
			}
		case "context_len":
			r.ContextLen = trace.Some(c.Int(trace.MaxLength))
		case "unique_user_prompt_len":
			r.UniquePromptLen = trace.Some(c.Int(trace.MaxLength))
		}
	}
	if r.HashIDs == nil && early.Peek() != 0 {
		r.HashIDs = early.Uints(ids, maxIDs(r.InputLength))
	}
	return c.Done() && input && output && !early.Failed()
}

// milliseconds reads a time or pause from 0 to [trace.MaxMS].
func milliseconds(c *jsonscan.Cursor) trace.Opt[float64] {
	n, places := c.Decimal()
	if n < 0 || n >= trace.MaxMS {
		c.Fail()
	}
	return trace.Some(float64(n) / jsonscan.Pow10[places])
}

// parseAny parses any valid row.
func parseAny(line []byte, r *trace.Request) error {
	ids := r.HashIDs[:0]
	*r = trace.Request{}
	if err := validObject(bytes.TrimSpace(line)); err != nil {
		if f := tableOf(line); f != "" {
			return fmt.Errorf("the header of %s in CSV, not a JSON object", named(f))
		}
		return err
	}
	var given uint32 // bits of the keys that have a value
	err := members(line, func(key []byte, _ int, _ []byte) error {
		if n := numberOf(key); n >= 0 {
			given |= 1 << n
		}
		return nil
	})
	if err != nil {
		return err
	}
	var unknown jsonscan.Object
	var rawIDs []byte // parsed last: the input length bounds them
	err = jsonscan.Members(line, func(key []byte, _ int, raw []byte) error {
		name := string(key)
		n := numberOf(name)
		if alias := numberOf(aliases[name]); alias >= 0 && given&(1<<alias) == 0 {
			n = alias
		}
		switch {
		case n < 0, name == "request_id" && raw[0] != '"': // also an id of another kind, which nothing refers to
			unknown.Add(name, raw)
		case raw[0] == 'n':
		case name == "hash_ids":
			rawIDs = raw
		default:
			given |= 1 << n
			return keyed(name, nativeKeys[n].parse(raw, r))
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.Extra = unknown.Bytes()
	switch {
	case given&(1<<numberOf("input_length")) == 0:
		return fmt.Errorf("no input_length in %s", Quote(line))
	case given&(1<<numberOf("output_length")) == 0:
		return fmt.Errorf("%w in %s", errNoOutput, Quote(line))
	}
	if rawIDs != nil {
		r.HashIDs, err = parseIDs(rawIDs, ids, r.InputLength)
	}
	return keyed("hash_ids", err)
}

// maxAfter bounds the requests that one waits for.
const maxAfter = 1 << 16

func parseAfter(raw []byte) (ids []string, err error) {
	if _, err := parseArray(raw); err != nil {
		return nil, err
	}
	ids = []string{}
	err = jsonscan.Elements(raw, func(_ int, raw []byte) error {
		if len(ids) == maxAfter {
			return fmt.Errorf("has more than %d request ids", maxAfter)
		}
		id, err := parseString(raw)
		if err != nil {
			return fmt.Errorf("has an id that %w", err)
		}
		ids = append(ids, id)
		return nil
	})
	return ids, err
}

var pauses = map[string]trace.DelayKind{string(trace.Think): trace.Think, string(trace.Tool): trace.Tool}

func parseDelayKind(raw []byte) (trace.DelayKind, error) {
	text, err := parseString(raw)
	kind := pauses[text]
	if err == nil && kind == "" {
		err = fmt.Errorf("is neither %s nor %s", trace.Think, trace.Tool)
	}
	return kind, err
}

var errNoOutput = errors.New("no output_length")

// nativeRows returns the parser of a native trace. explicit: the caller named the format.
func nativeRows(explicit bool) func(line []byte, r *trace.Request) error {
	return func(line []byte, r *trace.Request) error {
		err := ParseRow(line, r)
		if err == nil && !explicit && bytes.Contains(r.Extra, []byte(`"parent_chat_id"`)) && Detect(line) == Bailian {
			err = errors.New("times are seconds and block ids are hashes of single blocks")
		}
		return err
	}
}
