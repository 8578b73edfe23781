package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

var errNotObject = errors.New("not a JSON object")

// validObject returns an error unless b is one JSON object in UTF-8. All walks
// over b rely on it.
func validObject(b []byte) error {
	if len(b) == 0 || b[0] != '{' || !utf8.Valid(b) || !json.Valid(b) {
		return errNotObject
	}
	return nil
}

// members walks over the members of an object in valid JSON, without those that are null.
func members(b []byte, visit func(key []byte, at int, raw []byte) error) error {
	if _, err := parseObject(b); err != nil {
		return err
	}
	return jsonscan.Members(b, func(key []byte, at int, raw []byte) error {
		if raw[0] == 'n' {
			return nil
		}
		return visit(key, at, raw)
	})
}

// parseString parses a JSON string.
func parseString(raw []byte) (string, error) {
	if s, ok := jsonscan.String(raw); ok {
		return s, nil
	}
	return "", fmt.Errorf("is not a string: %s", Quote(raw))
}

func parseObject(raw []byte) ([]byte, error) { return opensWith('{', "an object", raw) }

func parseArray(raw []byte) ([]byte, error) { return opensWith('[', "an array", raw) }

func opensWith(bracket byte, what string, raw []byte) ([]byte, error) {
	if raw[0] != bracket {
		return nil, fmt.Errorf("is not %s: %s", what, Quote(raw))
	}
	return raw, nil
}

func parseAnything(raw []byte) ([]byte, error) { return raw, nil }

// field reads the value of a member, which is at an offset of its object.
type field = func(at int, raw []byte) error

// keys are the members of an object that are read.
type keys []struct {
	name string
	read field
}

func (k keys) of(name []byte) field {
	for i := range k {
		if k[i].name == string(name) {
			return k[i].read
		}
	}
	return nil
}

// into returns a field that keeps a value.
func into[T any](to *T, parse func(raw []byte) (T, error)) field {
	return func(_ int, raw []byte) (err error) {
		*to, err = parse(raw)
		return err
	}
}

// optional returns a field that keeps a value that may be absent.
func optional[T any](to *trace.Opt[T], parse func(raw []byte) (T, error)) field {
	return into(to, some(parse))
}

// readMembers reads the members of a valid object: those of taken, and those of kept,
// which are added to rest, as are all others. rest may be nil. Errors begin with path and
// the key. It is an error if a required key has no value, or an empty text.
func readMembers(path string, b []byte, taken, kept keys, rest *jsonscan.Object, required ...string) error {
	err := members(b, func(key []byte, at int, raw []byte) error {
		read := taken.of(key)
		if read == nil {
			if rest != nil {
				rest.Add(string(key), raw)
			}
			read = kept.of(key)
		}
		if read == nil {
			return nil
		}
		if err := read(at, raw); err != nil {
			return fmt.Errorf("%s%s %w", path, key, err)
		}
		if i := slices.Index(required, string(key)); i >= 0 && string(raw) != `""` {
			required = slices.Delete(required, i, i+1)
		}
		return nil
	})
	switch {
	case path == "." && b[0] != '{':
		return fmt.Errorf(" %w", err)
	case path == "." && errors.As(err, &jsonscan.DuplicateKeyError{}): // about the object, not a member
		return fmt.Errorf(": %w", err)
	case err == nil && len(required) > 0:
		return fmt.Errorf("no %s in %s", required[0], Quote(b))
	}
	return err
}

// readRow reads the members of a row, which must be an object: see readMembers.
func readRow(row []byte, taken, kept keys, rest *jsonscan.Object, required ...string) error {
	if err := validObject(row); err != nil {
		return err
	}
	return readMembers("", row, taken, kept, rest, required...)
}

// within returns a field that reads members of an object.
func within(taken keys) field {
	return func(_ int, raw []byte) error { return readMembers("", raw, taken, nil, nil) }
}

// unknownKeys returns the unknown keys of a row: its model, if any, what else was recorded, and
// whether the output length is missing.
func unknownKeys(model []byte, recorded jsonscan.Object, missingOutput bool) []byte {
	var all jsonscan.Object
	if missingOutput {
		all.Add("missing", []byte(`["output_length"]`))
	}
	all.Add("model", model)
	all.Add("recorded", recorded.Bytes())
	return all.Bytes()
}

// keyed prefixes the error about a value with its key or column.
func keyed(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", key, err)
}

// Quote describes a value for an error message without its text, which may be anybody's
// if the file is no trace. Of objects it has the names of members.
func Quote[T string | []byte](v T) string {
	value := bytes.TrimSpace([]byte(v))
	switch {
	case bytes.HasPrefix(value, []byte("{")):
		return "an object" + memberNames(value)
	case bytes.HasPrefix(value, []byte("[")):
		return "a list"
	case bytes.HasPrefix(value, []byte(`"`)):
		return "a string"
	}
	return fmt.Sprintf("a value of %d bytes", len(value))
}

// quoteNumber is Quote for the value of a known key: a number is quoted.
func quoteNumber[T string | []byte](v T) string {
	if value := string(v); len(value) <= 40 && value != "" && strings.Trim(value, "+-.0123456789eE") == "" {
		return value
	}
	return Quote(v)
}

// memberNames lists the names of the first members of an object. Other values have none.
func memberNames(object []byte) string {
	const most = 6
	var names []string
	c := jsonscan.New(object)
	for more := c.Open('{'); more && len(names) < most; more = c.More('}') {
		if key := string(c.Key()); jsonscan.IsName(key) {
			names = append(names, key)
		}
		c.Skip()
	}
	if len(names) == 0 {
		return ""
	}
	return " with the keys " + strings.Join(names, ", ")
}
