package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"moontide/trace/jsonscan"
)

// errStop ends a walk over JSON whose rest does not matter.
var errStop = errors.New("stop")

// validObject returns an error unless b is one JSON object in UTF-8. All walks
// over b rely on it.
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

// fields is members for values whose errors begin with a verb: it prefixes them with
// path and the key.
func fields(path string, b []byte, visit func(key []byte, at int, raw []byte) error) error {
	err := members(b, func(key []byte, at int, raw []byte) error {
		if err := visit(key, at, raw); err != nil {
			return fmt.Errorf("%s%s %w", path, key, err)
		}
		return nil
	})
	if path == "." && errors.As(err, &jsonscan.DuplicateKeyError{}) { // about the object, not a field
		return fmt.Errorf(": %w", err)
	}
	return err
}

// parseString parses a JSON string.
func parseString(raw []byte) (string, error) {
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

func isObject(raw []byte) error {
	if raw[0] != '{' {
		return fmt.Errorf("is not an object: %s", Quote(raw))
	}
	return nil
}

func isArray(raw []byte) error {
	if raw[0] != '[' {
		return fmt.Errorf("is not an array: %s", Quote(raw))
	}
	return nil
}

// object builds a JSON object.
type object struct{ b []byte }

func (o *object) add(key string, raw []byte) {
	if o.b == nil {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ", "...)
	}
	o.b = append(appendString(o.b, key), ": "...)
	o.b = append(o.b, raw...)
}

// addObject adds an object unless it is empty.
func (o *object) addObject(key string, value object) {
	if b := value.bytes(); b != nil {
		o.add(key, b)
	}
}

// bytes returns the object, or nil if nothing was added.
func (o *object) bytes() []byte {
	if o.b == nil {
		return nil
	}
	return append(o.b, '}')
}

// quoted returns s as a JSON string.
func quoted(s string) []byte {
	b, _ := json.Marshal(s) // cannot fail
	return b
}

// keyed prefixes the error about a value with its key or column.
func keyed(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", key, err)
}

// Quote quotes a value for an error message: on one line, and cut after 60
// bytes.
func Quote[T string | []byte](v T) string {
	const most = 60
	if len(v) > most {
		return strconv.Quote(string(v[:most])) + "..."
	}
	return strconv.Quote(string(v))
}
