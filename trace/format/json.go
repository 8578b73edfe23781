package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// errStop ends a walk over JSON whose end is of no interest.
var errStop = errors.New("stop")

// validObject returns an error unless b is one JSON object in UTF-8. The walks
// below rely on it.
func validObject(b []byte) error {
	if len(b) == 0 || b[0] != '{' || !utf8.Valid(b) || !json.Valid(b) {
		return fmt.Errorf("not a JSON object: %s", Quote(b))
	}
	return nil
}

// members walks over the members of a valid object. raw is a value, which
// begins at b[at]. A value of null is passed over. A key that is there twice is an
// error.
func members(b []byte, see func(key []byte, at int, raw []byte) error) error {
	var seen keys
	for i := skipSpace(b, 1); b[i] != '}'; {
		keyEnd := skipString(b, i)
		key := b[i+1 : keyEnd-1]
		at := skipSpace(b, skipSpace(b, keyEnd)+1)
		end := skipValue(b, at)
		if seen.has(key) {
			return twiceError{string(key)}
		}
		if b[at] != 'n' {
			if err := see(key, at, b[at:end:end]); err != nil {
				return err
			}
		}
		if i = skipSpace(b, end); b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return nil
}

// twiceError is a key that an object has more than once.
type twiceError struct{ key string }

func (e twiceError) Error() string { return fmt.Sprintf("key %.60q is given twice", e.key) }

// keys are those of one object. Most have few.
type keys struct {
	few  [24][]byte
	n    int
	many map[string]bool
}

// has reports whether a key was seen before, and sees it.
func (k *keys) has(key []byte) bool {
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
	seen := k.many[string(key)]
	k.many[string(key)] = true
	return seen
}

// elements walks over the elements of a valid array, which begin at b[at].
func elements(b []byte, see func(at int, raw []byte) error) error {
	for i := skipSpace(b, 1); b[i] != ']'; {
		end := skipValue(b, i)
		if err := see(i, b[i:end:end]); err != nil {
			return err
		}
		if i = skipSpace(b, end); b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at b[i], or
// len(b) where it does not end.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns the index behind the value that begins at b[i].
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i // behind a bare value
			}
			depth--
			i++
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return len(b)
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
	e.b = append(append(append(e.b, '"'), key...), `": `...)
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
