package format

import (
	"bytes"
	"fmt"
	"time"

	"moontide/trace"
)

func parseAzure(c *csvRows, r *trace.Request) error {
	field := c.field(columnOptional)
	if len(field) == 0 {
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

// parseDate returns a date in nanoseconds since 1970. A date without a zone is UTC.
func parseDate(b []byte) (int64, error) {
	const clock = len(time.DateTime)
	text := append(make([]byte, 0, 40), b...) // in the form that the standard library parses without allocating
	if len(text) >= clock && text[10] == ' ' {
		text[10] = 'T'
	}
	if len(text) >= clock && !bytes.ContainsAny(text[clock:], "Z+-") {
		text = append(text, 'Z')
	}
	var at time.Time
	if err := at.UnmarshalText(text); err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return 0, fmt.Errorf("is not a date like 2023-11-16 18:15:46.6805900: %s", Quote(b))
	}
	return at.UnixNano(), nil
}

// sinceFirstDate returns the milliseconds since the date in the first row.
func (c *csvRows) sinceFirstDate(field []byte) (float64, error) {
	at, err := parseDate(field)
	if err != nil {
		return 0, err
	}
	if c.origin == 0 {
		c.origin = at
		c.notes.say("time 0 is %.40s", field)
	}
	if at < c.origin {
		return 0, fmt.Errorf("is before that of the first row: %s", Quote(field))
	}
	return float64(at-c.origin) / float64(time.Millisecond), nil
}
