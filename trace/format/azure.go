package format

import (
	"errors"
	"fmt"
	"time"

	"moontide/trace"
)

func parseAzure(c *csvRows, r *trace.Request) error {
	field := c.optional(0)
	if field == nil {
		return nil
	}
	images, err := parseLength(field)
	if err != nil {
		return keyed("NumImages", err)
	}
	if images > 0 {
		c.notes.count("requests with images (only their text is counted)")
		r.Extra = fmt.Appendf(nil, `{"recorded": {"NumImages": %d}}`, images)
	}
	return nil
}

// dateParser parses dates. The zero value is ready to use.
type dateParser struct {
	first int64 // ns since 1970
	begun bool
	text  [40]byte
}

var errNotDate = errors.New("is not a date like 2023-11-16 18:15:46.6805900")

// sinceFirstDate returns the milliseconds since the date in the first row.
func (c *csvRows) sinceFirstDate(field []byte) (float64, error) {
	at, err := c.dates.parse(field)
	if err != nil {
		return 0, err
	}
	if !c.dates.begun {
		c.dates.begun, c.dates.first = true, at
		c.notes.say("time 0 is %.40s", field)
	}
	if at < c.dates.first {
		return 0, fmt.Errorf("is before that of the first row: %s", Quote(field))
	}
	return float64(at-c.dates.first) / float64(time.Millisecond), nil
}

// parse returns a date in nanoseconds since 1970. A date without a zone is UTC.
func (d *dateParser) parse(b []byte) (int64, error) {
	const clock = len("2006-01-02 15:04:05")
	if len(b) < clock || len(b) > len(d.text)-1 || b[10] != ' ' && b[10] != 'T' {
		return 0, fmt.Errorf("%w: %s", errNotDate, Quote(b))
	}
	// The standard library has a fast path for RFC 3339.
	text := append(d.text[:0], b...)
	text[10] = 'T'
	end := clock
	if end < len(text) && text[end] == '.' {
		for end++; end < len(text) && text[end]-'0' <= 9; end++ {
		}
	}
	if end == len(text) {
		text = append(text, 'Z')
	}
	leap := string(text[17:19]) == "60" // which the standard library does not accept
	if leap {
		copy(text[17:], "59")
	}
	var t time.Time
	err := t.UnmarshalText(text)
	if year := t.Year(); err != nil || end-clock > len(".999999999") || year < 1970 || year > 2200 {
		return 0, fmt.Errorf("%w: %s", errNotDate, Quote(b))
	}
	if leap {
		t = t.Add(time.Second)
	}
	return t.UnixNano(), nil
}
