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

// elements calls visit for the elements of an array, and for none of anything else.
func elements(raw []byte, visit func([]byte)) {
	if len(raw) > 0 && raw[0] == '[' {
		jsonscan.Elements(raw, func(_ int, element []byte) error {
			visit(element)
			return nil
		})
	}
}

// nested reports whether a value is an object or array with something in it.
func nested(raw []byte) bool {
	return len(raw) > 2 && (raw[0] == '{' || raw[0] == '[') && len(bytes.TrimSpace(raw[1:len(raw)-1])) > 0
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
func textOf(raw []byte) (s string) {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	jsonscan.Strict.Unmarshal(raw, &s)
	return s
}

// quoted returns a JSON string.
func quoted(s string) []byte { return jsonscan.AppendString(nil, s) }

// list returns a JSON array.
func list(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte(","))...), ']')
}

// Lookup returns the string or number in the member that a field names, such as chat or
// metadata.chat; "" if there is none.
func Lookup(body map[string][]byte, field string) string {
	raw, ok := body[field]
	if name, path, more := strings.Cut(field, "."); !ok && more {
		in, _ := membersOf(body[name])
		return Lookup(in, path)
	}
	switch {
	case len(raw) == 0 || string(raw) == "null" || raw[0] == '{' || raw[0] == '[':
		return ""
	case raw[0] == '"':
		return textOf(raw)
	}
	return string(raw)
}

// fields reads members of an entry, and keeps the first error of all of the entry.
type fields struct {
	members
	path string // of the members in the entry, with a point at the end
	err  *error
}

// in returns fields of the same entry.
func (f *fields) in(m members, path string) *fields {
	if m == nil {
		m = members{}
	}
	return &fields{m, path, f.err}
}

func (f *fields) wrong(name, what string) {
	if *f.err == nil {
		*f.err = fmt.Errorf("%s%s %s", f.path, name, what)
	}
}

// first returns the first of some members that is there.
func (f *fields) first(names ...string) (name string, raw []byte) {
	for _, name := range names {
		if raw := f.members[name]; len(raw) > 0 && string(raw) != `""` {
			return name, raw
		}
	}
	return "", nil
}

// object returns a member that is an object, or a string that contains one. It is empty
// if there is none.
func (f *fields) object(names ...string) *fields {
	name, raw := f.first(names...)
	if raw == nil {
		return f.in(nil, "")
	}
	m, err := membersOf(unwrap(raw))
	if err != nil {
		f.wrong(name, "is not an object")
	}
	return f.in(m, f.path+name+".")
}

// text returns a member that is a string or a number.
func (f *fields) text(names ...string) string {
	name, raw := f.first(names...)
	switch {
	case raw == nil:
		return ""
	case raw[0] == '"':
		return textOf(raw)
	case raw[0] == '-' || raw[0]-'0' <= 9:
		return string(raw)
	}
	f.wrong(name, "is not a string")
	return ""
}

// bare returns a member without the quotes of a string.
func (f *fields) bare(names ...string) (name, text string) {
	name, raw := f.first(names...)
	return name, strings.Trim(string(raw), `"`)
}

func (f *fields) flag(names ...string) trace.Opt[bool] {
	_, text := f.bare(names...)
	value, err := strconv.ParseBool(strings.ToLower(text))
	return trace.Opt[bool]{Value: value, Set: err == nil && len(text) > 1}
}

// number returns a member that is a number, or a string that contains one.
func (f *fields) number(names ...string) (n trace.Opt[float64]) {
	name, text := f.bare(names...)
	if text == "" {
		return n
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		f.wrong(name, "is not a number")
		return n
	}
	return trace.Some(value)
}

// tokens returns a number of tokens.
func (f *fields) tokens(names ...string) (n trace.Opt[int]) {
	number := f.number(names...)
	if !number.Set {
		return n
	}
	if v := number.Value; v < 0 || v > trace.MaxLength || v != math.Trunc(v) {
		name, _ := f.first(names...)
		f.wrong(name, "is not a number of tokens")
		return n
	}
	return trace.Some(int(number.Value))
}

// time returns a time, which may be a date, or a number of seconds to nanoseconds since
// 1970. The zero time and 0 are no times.
func (f *fields) time(names ...string) time.Time {
	name, text := f.bare(names...)
	t, ok := parseTime(text, strings.Contains(strings.ToLower(name), "nano"))
	if !ok {
		f.wrong(name, "is not a time")
	}
	return t
}

// after returns the time that is a number of seconds after begin, or of milliseconds if the
// name of the member ends in ms.
func (f *fields) after(begin time.Time, names ...string) time.Time {
	n, unit := f.number(names...), time.Second
	if name, _ := f.first(names...); strings.HasSuffix(strings.ToLower(name), "ms") {
		unit = time.Millisecond
	}
	if !n.Set || begin.IsZero() || !(n.Value > 0 && n.Value*float64(unit) < 1e7*float64(time.Second)) {
		return time.Time{}
	}
	return begin.Add(time.Duration(n.Value * float64(unit)).Round(time.Microsecond))
}

// earliest and latest bound the times that are believed.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// parseTime parses a date or a number, whose unit is found by its size unless it is
// nanoseconds. The zero time is none.
func parseTime(s string, nano bool) (t time.Time, ok bool) {
	if s == "" || strings.HasPrefix(s, "0001-") {
		return t, true
	}
	x, err := strconv.ParseFloat(s, 64)
	switch whole, notWhole := strconv.ParseInt(s, 10, 64); {
	case err == nil && x == 0:
		return t, true
	case notWhole == nil && (nano || whole >= 1e17):
		t = time.Unix(0, whole)
	case err != nil || !(math.Abs(x) < 1e18):
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
			if t, err = time.Parse(layout, s); err == nil {
				break
			}
		}
	case x >= 1e14:
		t = time.UnixMicro(int64(math.Round(x)))
	case x >= 1e11:
		t = time.UnixMicro(int64(math.Round(x * 1e3)))
	default:
		t = time.UnixMicro(int64(math.Round(x * 1e6)))
	}
	return t.UTC(), t.After(earliest) && t.Before(latest)
}
