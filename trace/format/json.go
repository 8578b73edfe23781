package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"moontide/trace/jsonscan"
)

// errStop ends a walk over JSON whose rest does not matter.
var errStop = errors.New("stop")

// validObject returns an error unless b is one JSON object in UTF-8. members and
// elements rely on it.
func validObject(b []byte) error {
	if len(b) == 0 || b[0] != '{' || !utf8.Valid(b) || !json.Valid(b) {
		return fmt.Errorf("not a JSON object: %s", Quote(b))
	}
	return nil
}

// members walks over the members of a valid object, without those that are null.
func members(b []byte, visit func(key []byte, at int, raw []byte) error) error {
	return jsonscan.Members(b, func(key []byte, at int, raw []byte) error {
		if raw[0] == 'n' {
			return nil
		}
		return visit(key, at, raw)
	})
}

// text is the string that a valid JSON value is.
func text(raw []byte) (string, error) {
	if raw[0] != '"' {
		return "", fmt.Errorf("is not a string: %s", Quote(raw))
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("is not a string: %s", Quote(raw))
	}
	return s, nil
}

// object returns an error unless a JSON value is one.
func object(raw []byte) error {
	if raw[0] != '{' {
		return fmt.Errorf("is not an object: %s", Quote(raw))
	}
	return nil
}

// array returns an error unless a JSON value is one.
func array(raw []byte) error {
	if raw[0] != '[' {
		return fmt.Errorf("is not an array: %s", Quote(raw))
	}
	return nil
}

// extra builds the unknown keys of a row.
type extra struct{ b []byte }

// add appends a member whose value is JSON.
func (e *extra) add(key string, raw []byte) {
	if e.b == nil {
		e.b = append(e.b, '{')
	} else {
		e.b = append(e.b, ", "...)
	}
	e.b = append(appendString(e.b, key), ": "...)
	e.b = append(e.b, raw...)
}

// object is what was added, nil where that is nothing.
func (e *extra) object() []byte {
	if e.b == nil {
		return nil
	}
	return append(e.b, '}')
}

// quoted is a string as JSON.
func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string cannot fail
	return b
}

// quotedNumber is a number of a table as JSON. What JSON would spell in another
// way is kept as a string.
func quotedNumber(b []byte) []byte {
	if json.Valid(b) {
		return b
	}
	return quoted(string(b))
}
