package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// DuplicateKeyError reports a key that occurs more than once in an object.
type DuplicateKeyError struct{ Key string }

func (e DuplicateKeyError) Error() string { return fmt.Sprintf("key %.60q is given twice", e.Key) }

// Members calls visit for each member of an object, which must be valid JSON. raw
// is the member's value and at its offset in the object. Members stops at the
// first error; a duplicate key is a [DuplicateKeyError].
func Members(object []byte, visit func(key []byte, at int, raw []byte) error) error {
	var seen keySet
	c := New(object)
	for more := c.Open('{'); more; more = c.More('}') {
		key := c.Key()
		if bytes.IndexByte(key, '\\') >= 0 {
			key = unescape(key)
		}
		c.Peek()
		at := c.at
		raw := c.Raw()
		if seen.add(key) {
			return DuplicateKeyError{string(key)}
		}
		if err := visit(key, at, raw); err != nil {
			return err
		}
	}
	return nil
}

// Elements calls visit for each element of an array, which must be valid JSON,
// with its offset in the array. It stops at the first error.
func Elements(array []byte, visit func(at int, raw []byte) error) error {
	c := New(array)
	for more := c.Open('['); more; more = c.More(']') {
		c.Peek()
		at := c.at
		if err := visit(at, c.Raw()); err != nil {
			return err
		}
	}
	return nil
}

// String returns a JSON string, which must be valid, and false for any other value.
func String(raw []byte) (s string, ok bool) {
	switch {
	case len(raw) < 2 || raw[0] != '"':
		return "", false
	case bytes.IndexByte(raw, '\\') < 0:
		return string(raw[1 : len(raw)-1]), true
	}
	return s, Strict.Unmarshal(raw, &s) == nil
}

func unescape(key []byte) []byte {
	var s string
	json.Unmarshal([]byte(`"`+string(key)+`"`), &s) // valid, as the object is
	return []byte(s)
}

// keySet holds the keys of one object. Most objects have few.
type keySet struct {
	few  [24][]byte
	n    int
	many map[string]bool
}

// add reports whether the key was added before.
func (k *keySet) add(key []byte) (seen bool) {
	for _, other := range k.few[:k.n] {
		if string(other) == string(key) {
			return true
		}
	}
	if k.n < len(k.few) {
		k.few[k.n] = key
		k.n++
		return false
	}
	if k.many == nil {
		k.many = map[string]bool{}
	}
	seen = k.many[string(key)]
	k.many[string(key)] = true
	return seen
}

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			// Invalid UTF-8 is written the way it will be read. The clone keeps
			// s from escaping to the heap in the usual case.
			quoted, _ := Strict.MarshalToString(strings.ToValidUTF8(strings.Clone(s), "\ufffd"))
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// Object builds a JSON object in the spelling of traces.
type Object struct{ text []byte }

// Add adds a member, whose value is JSON, or nothing if there is no value.
func (o *Object) Add(key string, value []byte) {
	switch {
	case len(value) == 0:
		return
	case o.text == nil:
		o.text = append(make([]byte, 0, 64), '{')
	default:
		o.text = append(o.text, ", "...)
	}
	o.text = append(AppendString(o.text, key), ": "...)
	o.text = append(o.text, value...)
}

// Bytes returns the object, nil if it has no members.
func (o *Object) Bytes() []byte {
	if o.text == nil {
		return nil
	}
	return append(o.text, '}')
}
