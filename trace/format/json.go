package format

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"moontide/trace"
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

func parseObject(raw []byte) ([]byte, error) {
	if raw[0] != '{' {
		return nil, fmt.Errorf("is not an object: %s", Quote(raw))
	}
	return raw, nil
}

func parseArray(raw []byte) ([]byte, error) {
	if raw[0] != '[' {
		return nil, fmt.Errorf("is not an array: %s", Quote(raw))
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
// the key.
func readMembers(path string, b []byte, taken, kept keys, rest *jsonscan.Object) error {
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
		return nil
	})
	if path == "." && errors.As(err, &jsonscan.DuplicateKeyError{}) { // about the object, not a member
		return fmt.Errorf(": %w", err)
	}
	return err
}

// unknownKeys returns the unknown keys of a row: its model, if any, what else was recorded, and
// whether the output length is missing.
func unknownKeys(model []byte, recorded jsonscan.Object, missingOutput bool) []byte {
	var all jsonscan.Object
	if missingOutput {
		all.Add("missing", []byte(`["output_length"]`))
	}
	if model != nil {
		all.Add("model", model)
	}
	if b := recorded.Bytes(); b != nil {
		all.Add("recorded", b)
	}
	return all.Bytes()
}

// quoted returns s as a JSON string.
func quoted(s string) []byte { return jsonscan.AppendString(nil, s) }

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

// objectReader splits a text into its JSON objects, which follow one another or
// are the elements of one array. It holds one of them.
type objectReader struct {
	in      *bufio.Reader
	maxSize int  // bytes of one object
	private bool // errors quote nothing
	buf     []byte
	line    int // of the next byte, from 1
	array   bool
	begun   bool
	ended   bool
	failed  bool
	atLine  int // where the object that next returned last starts, or its error is
}

func newObjectReader(in io.Reader, maxSize int) *objectReader {
	return &objectReader{in: bufio.NewReaderSize(in, 256<<10), maxSize: maxSize, line: 1}
}

func (o *objectReader) number() int { return o.atLine }

// next returns the next object, or io.EOF. The object is valid until the next
// call. After an error nothing more can be read.
func (o *objectReader) next() (object []byte, err error) {
	if o.failed {
		return nil, io.EOF
	}
	if object, err = o.object(); err != nil {
		o.failed, o.atLine = true, o.line
	}
	return object, err
}

func (o *objectReader) object() ([]byte, error) {
	c, err := o.firstByte()
	if err != nil {
		return nil, err
	}
	if c != '{' {
		return nil, fmt.Errorf("not a JSON object%s", o.context(c))
	}
	o.atLine = o.line
	o.buf = append(o.buf[:0], c)
	depth, inString, escaped := 1, false, false
	for depth > 0 {
		c, err := o.byte()
		if err == io.EOF {
			return nil, fmt.Errorf("the file ends within the object that starts on line %d%s", o.atLine, o.quote(o.buf))
		}
		if err != nil {
			return nil, err
		}
		if len(o.buf) == o.maxSize {
			return nil, fmt.Errorf("the object that starts on line %d is longer than %d MiB%s", o.atLine, o.maxSize>>20, o.quote(o.buf))
		}
		o.buf = append(o.buf, c)
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return o.buf, nil
}

// firstByte returns the first byte of the next object.
func (o *objectReader) firstByte() (byte, error) {
	comma := !o.begun || !o.array
	for {
		c, err := o.byte()
		switch {
		case err == io.EOF && o.array && !o.ended:
			return 0, errors.New("the file ends within its array")
		case err != nil:
			return 0, err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case o.ended:
			return 0, fmt.Errorf("text after the end of the array%s", o.context(c))
		case !o.begun && c == '[':
			o.array, o.begun = true, true
			comma = true
		case o.array && c == ']' && !(comma && o.atLine > 0):
			o.ended = true
		case !comma && c == ',':
			comma = true
		case !comma:
			return 0, fmt.Errorf("expected a comma or the end of the array%s", o.context(c))
		default:
			o.begun = true
			return c, nil
		}
	}
}

func (o *objectReader) byte() (byte, error) {
	c, err := o.in.ReadByte()
	if err != nil {
		if err != io.EOF {
			err = trace.ReadError{Err: err}
		}
		return 0, err
	}
	if c == '\n' {
		o.line++
	}
	return c, nil
}

// context quotes the text from c on, as the end of an error message.
func (o *objectReader) context(c byte) string {
	rest, _ := o.in.Peek(80)
	return o.quote(append([]byte{c}, rest...))
}

// quote returns the end of an error message.
func (o *objectReader) quote(text []byte) string {
	if o.private {
		return ""
	}
	return ": " + Quote(text)
}
