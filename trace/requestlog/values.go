package requestlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/bytedance/sonic"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// members are those of an object, without those that are null.
type members map[string][]byte

func (m members) has(key string) bool { return len(m[key]) > 0 }

// membersOf returns the members of an object, which must be valid JSON.
func membersOf(raw []byte) (members, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errNotJSON
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

// unwrap returns the JSON that a JSON string contains, or the value itself.
func unwrap(raw []byte) []byte {
	if len(raw) < 4 || raw[0] != '"' {
		return raw
	}
	s := textOf(raw)
	if t := strings.TrimLeft(s, " \t\r\n"); t != "" && (t[0] == '{' || t[0] == '[') && sonic.ValidString(s) {
		return bytes.TrimSpace([]byte(s))
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

// fields reads members of an entry, and keeps the first error.
type fields struct {
	members
	path string // of the members in the entry, with a point at the end
	err  error
}

func (f *fields) wrong(name, what string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s%s %s", f.path, name, what)
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
	in := &fields{members: members{}}
	name, raw := f.first(names...)
	if raw == nil {
		return in
	}
	m, err := membersOf(unwrap(raw))
	if err != nil {
		f.wrong(name, "is not an object")
		return in
	}
	in.members, in.path = m, f.path+name+"."
	return in
}

// within passes the error of fields that are part of f.
func (f *fields) within(in *fields) {
	if f.err == nil {
		f.err = in.err
	}
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

func (f *fields) flag(names ...string) trace.Opt[bool] {
	_, raw := f.first(names...)
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "true":
		return trace.Some(true)
	case "false":
		return trace.Some(false)
	}
	return trace.Opt[bool]{}
}

// number returns a member that is a number, or a string that contains one.
func (f *fields) number(names ...string) trace.Opt[float64] {
	name, raw := f.first(names...)
	if raw == nil {
		return trace.Opt[float64]{}
	}
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		f.wrong(name, "is not a number")
		return trace.Opt[float64]{}
	}
	return trace.Some(n)
}

// tokens returns a number of tokens.
func (f *fields) tokens(names ...string) trace.Opt[int] {
	n := f.number(names...)
	if !n.Set {
		return trace.Opt[int]{}
	}
	if n.Value < 0 || n.Value > trace.MaxLength || n.Value != math.Trunc(n.Value) {
		name, _ := f.first(names...)
		f.wrong(name, "is not a number of tokens")
		return trace.Opt[int]{}
	}
	return trace.Some(int(n.Value))
}

// time returns a time, which may be a date, or a number of seconds to nanoseconds since
// 1970. The zero time and 0 are no times.
func (f *fields) time(names ...string) time.Time {
	name, raw := f.first(names...)
	if raw == nil {
		return time.Time{}
	}
	t, ok := parseTime(strings.Trim(string(raw), `"`), strings.Contains(strings.ToLower(name), "nano"))
	if !ok {
		f.wrong(name, "is not a time")
	}
	return t
}

// after returns the time that is a number of seconds after begin.
func (f *fields) after(begin time.Time, names ...string) time.Time {
	s := f.number(names...)
	if !s.Set || begin.IsZero() || !(s.Value > 0 && s.Value < 1e7) {
		return time.Time{}
	}
	return begin.Add(time.Duration(s.Value * float64(time.Second)).Round(time.Microsecond))
}

// earliest and latest bound the times that are believed.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func parseTime(s string, nano bool) (t time.Time, ok bool) {
	if s == "" || strings.HasPrefix(s, "0001-") {
		return t, true
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return sinceEpoch(n, nano)
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(x) < 1e18 {
		switch {
		case x == 0:
			return t, true
		case x < 1e11:
			t = time.UnixMicro(int64(math.Round(x * 1e6)))
		case x < 1e14:
			t = time.UnixMicro(int64(math.Round(x * 1e3)))
		default:
			t = time.UnixMicro(int64(math.Round(x)))
		}
		return t.UTC(), believed(t)
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), believed(t)
		}
	}
	return t, false
}

// sinceEpoch finds the unit of a whole number by its size, unless it is nanoseconds.
func sinceEpoch(n int64, nano bool) (t time.Time, ok bool) {
	switch {
	case n == 0:
		return t, true
	case nano || n >= 1e17:
		t = time.Unix(0, n)
	case n >= 1e14:
		t = time.UnixMicro(n)
	case n >= 1e11:
		t = time.UnixMilli(n)
	default:
		t = time.Unix(n, 0)
	}
	return t.UTC(), believed(t)
}

func believed(t time.Time) bool { return t.After(earliest) && t.Before(latest) }

// quoted returns a JSON string.
func quoted(s string) []byte {
	b, _ := json.Marshal(s) // cannot fail
	return b
}
