package format

import (
	"bytes"
	"errors"
	"fmt"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// canonicalKey maps each key of the native format, and its aliases, to the key
// that is written. An alias is used only if the row has no value under the
// canonical key: a result line has both input_length and the server's
// input_tokens.
var canonicalKey = map[string]string{
	"timestamp":              "timestamp",
	"created_time":           "timestamp",
	"delay":                  "delay",
	"delay_ms":               "delay",
	"input_length":           "input_length",
	"input_tokens":           "input_length",
	"output_length":          "output_length",
	"output_tokens":          "output_length",
	"hash_ids":               "hash_ids",
	"session_id":             "session_id",
	"request_id":             "request_id",
	"after":                  "after",
	"delay_kind":             "delay_kind",
	"context_len":            "context_len",
	"unique_user_prompt_len": "unique_user_prompt_len",
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

type member struct {
	key string
	raw []byte
}

func (m member) null() bool { return m.raw[0] == 'n' }

// parseAny parses any valid row.
func parseAny(line []byte, r *trace.Request) error {
	ids := r.HashIDs[:0]
	*r = trace.Request{}
	if err := validObject(bytes.TrimSpace(line)); err != nil {
		return notObject(line)
	}
	var members []member
	hasValue := map[string]bool{}
	err := jsonscan.Members(line, func(key []byte, _ int, raw []byte) error {
		m := member{string(key), raw}
		members = append(members, m)
		hasValue[m.key] = !m.null()
		return nil
	})
	if err != nil {
		return err
	}
	var unknown jsonscan.Object
	var rawIDs []byte // parsed last: the input length bounds them
	for _, m := range members {
		key, known := canonicalKey[m.key]
		switch {
		case !known || key != m.key && hasValue[key]:
			unknown.Add(m.key, m.raw)
		case key == "request_id" && m.raw[0] != '"': // an id of another kind, which nothing refers to
			unknown.Add(m.key, m.raw)
		case m.null():
		case key == "hash_ids":
			rawIDs = m.raw
		default:
			hasValue[key] = true
			if err := keyed(m.key, setField(r, key, m.raw)); err != nil {
				return err
			}
		}
	}
	r.Extra = unknown.Bytes()
	for _, key := range []string{"input_length", "output_length"} {
		if !hasValue[key] {
			return missingKeyError{key, Quote(line)}
		}
	}
	if rawIDs != nil {
		r.HashIDs, err = parseIDs(rawIDs, ids, r.InputLength)
	}
	return keyed("hash_ids", err)
}

func setField(r *trace.Request, key string, raw []byte) (err error) {
	switch key {
	case "timestamp":
		err = set(&r.Timestamp, raw, parseMilliseconds)
	case "delay":
		err = set(&r.Delay, raw, parseMilliseconds)
	case "input_length":
		r.InputLength, err = parseLength(raw)
	case "output_length":
		r.OutputLength, err = parseLength(raw)
	case "context_len":
		err = set(&r.ContextLen, raw, parseLength)
	case "unique_user_prompt_len":
		err = set(&r.UniquePromptLen, raw, parseLength)
	case "session_id":
		r.SessionID, err = parseString(raw)
	case "request_id":
		r.ID, err = parseString(raw)
	case "after":
		r.After, err = parseAfter(raw)
	case "delay_kind":
		r.DelayKind, err = parseDelayKind(raw)
	}
	return err
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

func parseDelayKind(raw []byte) (trace.DelayKind, error) {
	text, err := parseString(raw)
	kind := trace.DelayKind(text)
	if err == nil && kind != trace.Think && kind != trace.Tool {
		err = fmt.Errorf("is neither %s nor %s: %.40q", trace.Think, trace.Tool, text)
	}
	return kind, err
}

// missingKeyError reports a row without one of the lengths.
type missingKeyError struct{ key, row string }

func (e missingKeyError) Error() string { return "no " + e.key + " in " + e.row }

var errNotObject = errors.New("not a JSON object")

// notObject returns the error for a line that is not a JSON object.
func notObject(line []byte) error {
	if t := tableOf(line); t != nil {
		return fmt.Errorf("the header of %s in CSV, not a JSON object: %s", named(t.format), Quote(line))
	}
	if bytes.HasPrefix(line, []byte("{")) && !looksNative(line) { // it may be of a log, with its texts
		return fmt.Errorf("%w, or cut off", errNotObject)
	}
	return fmt.Errorf("%w: %s", errNotObject, Quote(line))
}

// nativeRows parses the lines of the native format.
type nativeRows struct {
	explicit bool // the caller named the format
}

func (n nativeRows) parse(line []byte, r *trace.Request) error {
	err := ParseRow(line, r)
	if err == nil {
		if !n.explicit && bytes.Contains(r.Extra, []byte(`"parent_chat_id"`)) && Detect(line) == Bailian {
			return fmt.Errorf("times are seconds and block ids are hashes of single blocks: %s", Quote(line))
		}
		return nil
	}
	var missing missingKeyError // allocated here, so only for a bad row
	if errors.As(err, &missing) && missing.key == "output_length" {
		return fmt.Errorf("%w (format %s accepts such rows, with length 0 and a mark)", err, AIPerf)
	}
	return err
}

// FilterExtra returns the unknown keys of r, each passed through edit. edit gets
// a key and its raw JSON value and returns their replacements, or keep == false to
// drop them.
func FilterExtra(r *trace.Request, edit func(key, raw string) (newKey, newRaw string, keep bool)) ([]byte, error) {
	if len(r.Extra) == 0 {
		return nil, nil
	}
	var out jsonscan.Object
	err := validObject(r.Extra)
	if err == nil {
		err = jsonscan.Members(r.Extra, func(key []byte, _ int, raw []byte) error {
			if key, raw, keep := edit(string(key), string(raw)); keep {
				out.Add(key, []byte(raw))
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reading unknown keys: %w", err)
	}
	return out.Bytes(), nil
}

// Bits of the keys of a native row.
const (
	keyTimestamp = 1 << iota
	keyDelay
	keyInput
	keyOutput
	keyHashIDs
	keySession
	keyContext
	keyUnique
	keyID
	keyAfter
	keyDelayKind
)

// parseCanonical parses a row in the form that all writers of this format use:
// canonical keys, plain numbers, no escapes. It is the hot path of every command.
// It returns false for any other row, which parseAny parses.
func parseCanonical(line []byte, r *trace.Request) bool {
	ids := r.HashIDs[:0]
	*r = trace.Request{}
	c := jsonscan.New(line)
	var seen uint32
	var early jsonscan.Cursor // at ids that precede the length that bounds them
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "timestamp":
			c.Once(&seen, keyTimestamp)
			r.Timestamp = milliseconds(&c)
		case "input_length":
			c.Once(&seen, keyInput)
			r.InputLength = c.Int(trace.MaxLength)
		case "output_length":
			c.Once(&seen, keyOutput)
			r.OutputLength = c.Int(trace.MaxLength)
		case "hash_ids":
			c.Once(&seen, keyHashIDs)
			if seen&keyInput != 0 {
				r.HashIDs = c.Uints(ids, maxIDs(r.InputLength))
			} else {
				early = c
				c.Raw()
			}
		case "session_id":
			c.Once(&seen, keySession)
			r.SessionID = string(c.PlainText())
		case "delay":
			c.Once(&seen, keyDelay)
			r.Delay = milliseconds(&c)
		case "delay_kind":
			c.Once(&seen, keyDelayKind)
			r.DelayKind = delayKind(&c)
		case "request_id":
			c.Once(&seen, keyID)
			r.ID = string(c.PlainText())
		case "after":
			c.Once(&seen, keyAfter)
			r.After = after(&c)
		case "context_len":
			c.Once(&seen, keyContext)
			r.ContextLen = trace.Some(c.Int(trace.MaxLength))
		case "unique_user_prompt_len":
			c.Once(&seen, keyUnique)
			r.UniquePromptLen = trace.Some(c.Int(trace.MaxLength))
		default:
			c.Fail()
		}
	}
	if !c.Done() || seen&keyInput == 0 || seen&keyOutput == 0 {
		return false
	}
	if r.HashIDs == nil && seen&keyHashIDs != 0 {
		r.HashIDs = early.Uints(ids, maxIDs(r.InputLength))
		return !early.Failed()
	}
	return true
}

// after reads an array of request ids.
func after(c *jsonscan.Cursor) []string {
	ids := []string{}
	for more := c.Open('['); more; more = c.More(']') {
		if len(ids) == maxAfter {
			c.Fail()
		}
		ids = append(ids, string(c.PlainText()))
	}
	return ids
}

func delayKind(c *jsonscan.Cursor) trace.DelayKind {
	switch string(c.PlainText()) {
	case string(trace.Think):
		return trace.Think
	case string(trace.Tool):
		return trace.Tool
	}
	c.Fail()
	return ""
}

// milliseconds reads a time or pause from 0 to [trace.MaxMS].
func milliseconds(c *jsonscan.Cursor) trace.Opt[float64] {
	n, places := c.Decimal()
	if n < 0 || n >= trace.MaxMS {
		c.Fail()
		return trace.Opt[float64]{}
	}
	return trace.Some(float64(n) / jsonscan.Pow10[places])
}
