package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bytedance/sonic"
	"github.com/bytedance/sonic/ast"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// canonical maps each key that moontide understands, and its aliases, to the
// key that it writes. An alias counts only where the row lacks its canonical
// key: a result line has both input_length and the server's own input_tokens.
var canonical = map[string]string{
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
	"context_len":            "context_len",
	"unique_user_prompt_len": "unique_user_prompt_len",
}

// spareIDs is how many ids a row may have beyond one a token: lengths and ids
// are not always counted of the same text.
const spareIDs = 64

// mostIDs is how many ids a row may have: a block has at least one token.
func maxIDs(inputLength int) int { return inputLength + spareIDs }

// ParseRow fills r from one line of a trace, which is one JSON object. r's ids
// keep their array where it is large enough. On an error r is half filled and
// must be discarded.
func ParseRow(line []byte, r *trace.Request) error {
	ids := r.HashIDs
	if parseCanonical(line, r) {
		return nil
	}
	r.HashIDs = ids
	return parseAny(line, r)
}

// parseAny reads every legal row, in any spelling.
func parseAny(line []byte, r *trace.Request) error {
	*r = trace.Request{HashIDs: r.HashIDs[:0]}
	// sonic's own check lets through control characters and unknown escapes.
	if !json.Valid(line) || !utf8.Valid(line) {
		return notObject(line)
	}
	root, err := sonic.Get(line)
	if err != nil || root.TypeSafe() != ast.V_OBJECT {
		return notObject(line)
	}
	members, err := membersOf(&root)
	if err != nil {
		return err
	}
	present, err := keysOf(members)
	if err != nil {
		return err
	}
	var ids *member // read last: the length bounds them
	for _, m := range members {
		key, known := canonical[m.key]
		if known && key != m.key && present[key] {
			known = false
		}
		if !known {
			r.Extra = appendMember(r.Extra, m.key, m.raw)
			continue
		}
		if m.raw == "null" {
			continue
		}
		if key == "hash_ids" {
			ids = &m
			continue
		}
		if err := setKey(r, key, m.raw); err != nil {
			return fmt.Errorf("%s %w", m.key, err)
		}
	}
	if r.Extra != nil {
		r.Extra = append(r.Extra, '}')
	}
	for _, key := range []string{"input_length", "output_length"} {
		if !has(members, key) {
			return missingError{key, Quote(line)}
		}
	}
	if ids == nil {
		r.HashIDs = nil
		return nil
	}
	if r.HashIDs, err = ParseIDs(ids.raw, r.HashIDs, r.InputLength); err != nil {
		return fmt.Errorf("hash_ids %w", err)
	}
	return nil
}

// missingError is a row without one of the lengths.
type missingError struct{ key, row string }

func (e missingError) Error() string { return "no " + e.key + " in " + e.row }

// IsMissing reports whether err says that a row lacks this key: input_length or
// output_length.
func IsMissing(err error, key string) bool {
	var missing missingError
	return errors.As(err, &missing) && missing.key == key
}

// csvHeaders begin the CSV files that traces are published as.
var csvHeaders = map[string]string{
	"TIMESTAMP,ContextTokens,GeneratedTokens":         "an Azure trace",
	"Timestamp,Model,Request tokens,Response tokens":  "a BurstGPT trace",
	"Timestamp,Session ID,Elapsed time,Model,":        "a BurstGPT trace",
	"arrived_at,num_prefill_tokens,num_decode_tokens": "a Vidur trace",
}

func notObject(line []byte) error {
	for header, trace := range csvHeaders {
		if bytes.HasPrefix(line, []byte(header)) {
			return fmt.Errorf("the header of %s in CSV, not a JSON object: %s", trace, Quote(line))
		}
	}
	return fmt.Errorf("not a JSON object: %s", Quote(line))
}

type member struct{ key, raw string }

func membersOf(root *ast.Node) ([]member, error) {
	var members []member
	var failed error
	err := root.ForEach(func(at ast.Sequence, node *ast.Node) bool {
		raw, err := node.Raw()
		if err != nil || at.Key == nil {
			failed = errors.Join(errors.New("not a JSON object"), err)
			return false
		}
		members = append(members, member{*at.Key, raw})
		return true
	})
	return members, errors.Join(err, failed)
}

// keysOf returns the keys that have a value. One that is null leaves its place
// to an alias.
func keysOf(members []member) (map[string]bool, error) {
	keys := map[string]bool{}
	for _, m := range members {
		if _, twice := keys[m.key]; twice {
			return nil, fmt.Errorf("key %q is given twice", m.key)
		}
		keys[m.key] = m.raw != "null"
	}
	return keys, nil
}

// has reports whether a known key has a value under its own name or an alias.
func has(members []member, key string) bool {
	for _, m := range members {
		if canonical[m.key] == key && m.raw != "null" {
			return true
		}
	}
	return false
}

func appendMember(dst []byte, key, raw string) []byte {
	if dst == nil {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ", "...)
	}
	dst = appendString(dst, key)
	dst = append(dst, ": "...)
	return append(dst, raw...)
}

func setKey(r *trace.Request, key, raw string) (err error) {
	switch key {
	case "timestamp":
		r.Timestamp, err = parseMS(raw)
	case "delay":
		r.Delay, err = parseMS(raw)
	case "input_length":
		r.InputLength, err = ParseLength(raw)
	case "output_length":
		r.OutputLength, err = ParseLength(raw)
	case "context_len":
		r.ContextLen.Value, err = ParseLength(raw)
		r.ContextLen.Set = true
	case "unique_user_prompt_len":
		r.UniquePromptLen.Value, err = ParseLength(raw)
		r.UniquePromptLen.Set = true
	case "session_id":
		if err = jsonscan.Strict.UnmarshalFromString(raw, &r.SessionID); err != nil {
			err = fmt.Errorf("is not a string: %s", Quote(raw))
		}
	}
	return err
}

func parseMS(raw string) (trace.Opt[float64], error) {
	ms, err := parseNumber(raw)
	if err != nil {
		return trace.Opt[float64]{}, err
	}
	if ms < 0 || ms > trace.MaxMS {
		return trace.Opt[float64]{}, fmt.Errorf("is out of range: %s ms", Quote(raw))
	}
	return trace.Some(ms), nil
}

// ParseLength reads an ISL or OSL, 0..[MaxLength], from a JSON value. Its errors
// begin with a verb, so that they can follow the name of the key.
func ParseLength(raw string) (int, error) {
	n, err := parseNumber(raw)
	if err != nil {
		return 0, err
	}
	// Python writes 12.0 for a count that passed through a float column.
	if n != math.Trunc(n) {
		return 0, fmt.Errorf("is not a whole number: %s", Quote(raw))
	}
	if n < 0 || n > trace.MaxLength {
		return 0, fmt.Errorf("is out of range: %s tokens", Quote(raw))
	}
	return int(n), nil
}

func parseNumber(raw string) (float64, error) {
	// JSON was validated: what begins like a number is one.
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, fmt.Errorf("is not a number: %s", Quote(raw))
	}
	n, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return 0, fmt.Errorf("is out of range: %s", Quote(raw))
	}
	return n + 0, nil // -0 is 0
}

// ParseIDs reads block ids from a JSON value into dst, whose array it uses where
// that is large enough. A prompt of inputLength tokens bounds their number. Its
// errors begin with a verb, so that they can follow the name of the key.
func ParseIDs(raw string, dst []uint64, inputLength int) ([]uint64, error) {
	if raw[0] != '[' {
		return nil, fmt.Errorf("is not an array: %s", Quote(raw))
	}
	if n := strings.Count(raw, ",") + 1; n > maxIDs(inputLength) {
		return nil, fmt.Errorf("has %d ids for an input_length of %d: a block has at least one token", n, inputLength)
	}
	if dst = dst[:0]; dst == nil {
		dst = []uint64{}
	}
	for i := 1; ; {
		for i < len(raw) && (isSpace(raw[i]) || raw[i] == ',') {
			i++
		}
		if raw[i] == ']' {
			return dst, nil
		}
		end := i
		for raw[end] != ',' && raw[end] != ']' && !isSpace(raw[end]) {
			end++
			if end == len(raw) {
				return nil, fmt.Errorf("has an id that is not a number: %s", Quote(raw[i:]))
			}
		}
		id, err := strconv.ParseUint(raw[i:end], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("has an id that is not an unsigned 64-bit integer: %s", Quote(raw[i:end]))
		}
		dst = append(dst, id)
		i = end
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// Quote shows a value in an error: on one line, and no longer than a glance.
func Quote[T string | []byte](v T) string {
	const most = 60
	if len(v) > most {
		return strconv.Quote(string(v[:most])) + "..."
	}
	return strconv.Quote(string(v))
}
