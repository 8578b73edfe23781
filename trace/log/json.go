package log

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// members are those of an object, without those that are null.
type members map[string][]byte

func (m members) has(key string) bool { return len(m[key]) > 0 }

// membersOf returns the members of an object, which must be valid JSON.
func membersOf(raw []byte) (members, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	m := members{}
	err := jsonscan.Members(raw, func(key []byte, _ int, value []byte) error {
		if string(value) != "null" {
			m[string(key)] = value
		}
		return nil
	})
	if err != nil {
		return nil, errors.New("an object has a key twice")
	}
	return m, nil
}

// find returns the member with a name, which may have points, or the one at a path of
// objects, such as response.usage; nil if there is none.
func (m members) find(path string) []byte {
	if raw, known := m[path]; known {
		return raw
	}
	name, rest, nested := strings.Cut(path, ".")
	if object, known := m[name]; nested && known {
		in, _ := membersOf(unwrap(object))
		return in.find(rest)
	}
	return nil
}

// first returns the first of some members that is there and not "".
func (m members) first(names []string) (name string, raw []byte) {
	for _, name := range names {
		if raw := m.find(name); len(raw) > 0 && string(raw) != `""` {
			return name, raw
		}
	}
	return "", nil
}

// Lookup returns the string or number that a field of a body names, such as chat or
// metadata.chat; "" if there is none.
func Lookup(body map[string][]byte, field string) string {
	raw := members(body).find(field)
	if len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
		return ""
	}
	return bare(raw)
}

// elements calls visit for the elements of an array, and for none of anything else.
func elements(raw []byte, visit func([]byte)) {
	if len(raw) > 0 && raw[0] == '[' {
		jsonscan.Elements(raw, func(_ int, element []byte) error {
			visit(element)
			return nil
		})
	}
}

// list returns a JSON array.
func list(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte(","))...), ']')
}

// unwrap returns the JSON that a JSON string contains, or the value itself.
func unwrap(raw []byte) []byte {
	if len(raw) < 4 || raw[0] != '"' {
		return raw
	}
	s := strings.TrimSpace(textOf(raw))
	if s != "" && (s[0] == '{' || s[0] == '[') && json.Valid([]byte(s)) {
		return []byte(s)
	}
	return raw
}

// textOf returns a JSON string, "" for other values.
func textOf(raw []byte) string {
	s, _ := jsonscan.String(raw)
	return s
}

// bare returns a JSON string, or another value as it is.
func bare(raw []byte) string {
	if s, ok := jsonscan.String(raw); ok {
		return s
	}
	return string(raw)
}

// fields reads facts of an entry.
type fields struct {
	members
	err *error // the first of the entry
}

// read parses the first of some members that is there.
func read[T any](f *fields, names []string, what string, parse func(raw []byte, name string) (T, bool)) (value T) {
	name, raw := f.first(names)
	if raw == nil {
		return value
	}
	value, ok := parse(raw, name)
	if !ok && *f.err == nil {
		*f.err = fmt.Errorf("%s is not %s", name, what)
	}
	return value
}

// object returns a member that is an object, or a string that contains one. It is empty
// if there is none.
func (f *fields) object(names ...string) *fields {
	return &fields{read(f, names, "an object", func(raw []byte, _ string) (members, bool) {
		m, err := membersOf(unwrap(raw))
		return m, err == nil
	}), f.err}
}

// text returns a member that is a string or a number.
func (f *fields) text(names []string) string {
	return read(f, names, "a string", func(raw []byte, _ string) (string, bool) {
		return bare(raw), raw[0] == '"' || raw[0] == '-' || raw[0]-'0' <= 9
	})
}

// tokens returns a number of tokens, or a string that contains one.
func (f *fields) tokens(names []string) trace.Opt[int] {
	return read(f, names, "a number of tokens", func(raw []byte, _ string) (trace.Opt[int], bool) {
		n, err := strconv.ParseFloat(bare(raw), 64)
		return trace.Some(int(n)), err == nil && n >= 0 && n <= trace.MaxLength && n == math.Trunc(n)
	})
}

// time returns a time: see parseTime.
func (f *fields) time(names []string) time.Time { return read(f, names, "a time", parseTime) }

// after returns the time that is a number of seconds after begin, or of milliseconds if the
// name of the member ends in ms.
func (f *fields) after(begin time.Time, names []string) time.Time {
	return read(f, names, "a number", func(raw []byte, name string) (t time.Time, ok bool) {
		n, err := strconv.ParseFloat(bare(raw), 64)
		if !strings.HasSuffix(strings.ToLower(name), "ms") {
			n *= 1000
		}
		if n > 0 && n < 1e10 && !begin.IsZero() {
			t = begin.Add(time.Duration(n * float64(time.Millisecond)).Round(time.Microsecond))
		}
		return t, err == nil
	})
}

// earliest and latest bound the times that are believed.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// parseTime parses a date, or a number of seconds, milliseconds, microseconds or
// nanoseconds since 1970: its unit is found by its size, unless its name has it. The zero
// time and 0 are no time.
func parseTime(raw []byte, name string) (t time.Time, ok bool) {
	s := bare(raw)
	x, err := strconv.ParseFloat(s, 64)
	switch whole, notWhole := strconv.ParseInt(s, 10, 64); {
	case err == nil && x == 0, strings.HasPrefix(s, "0001-"):
		return t, true
	case notWhole == nil && (whole >= 1e17 || strings.Contains(strings.ToLower(name), "nano")):
		t = time.Unix(0, whole)
	case err != nil || math.IsNaN(x):
		t, _ = ParseDate([]byte(s))
	case x >= 1e14:
		t = time.UnixMicro(int64(math.Round(x)))
	case x >= 1e11:
		t = time.UnixMicro(int64(math.Round(x * 1e3)))
	default:
		t = time.UnixMicro(int64(math.Round(x * 1e6)))
	}
	return t.UTC(), t.After(earliest) && t.Before(latest)
}

// ParseDate parses a date like 2023-11-16 18:15:46.68, perhaps with a T between day and
// clock, and with a zone: without one it is UTC.
func ParseDate(date []byte) (t time.Time, err error) {
	const clock = len(time.DateTime)
	text := append(make([]byte, 0, 40), date...) // in the form that the standard library parses without allocating
	if len(text) >= clock && text[10] == ' ' {
		text[10] = 'T'
	}
	if len(text) > clock && text[clock] == ',' {
		text[clock] = '.'
	}
	if len(text) >= clock && !bytes.ContainsAny(text[clock:], "Z+-") {
		text = append(text, 'Z')
	}
	err = t.UnmarshalText(text)
	return t, err
}
