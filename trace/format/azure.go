package format

import (
	"bytes"
	"fmt"
	"time"

	"moontide/trace"
	"moontide/trace/jsonscan"
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

// dateParser parses dates. Most are of the minute of the one before, and then only their
// seconds are parsed.
type dateParser struct {
	minute [len("2006-01-02 15:04:")]byte
	start  int64 // of that minute, in ns since 1970
}

func (d *dateParser) parse(b []byte) (int64, error) {
	const seconds, clock = len(d.minute), len(time.DateTime)
	utc := bytes.TrimSuffix(b, []byte("+00:00"))
	if len(utc) == clock || len(utc) > clock && utc[clock] == '.' {
		n, places, ok := splitDecimal(utc[seconds:])
		ok = ok && places <= 9 && float64(n) < 60*jsonscan.Pow10[places]
		if ok && [seconds]byte(utc) == d.minute {
			return d.start + int64(n)*int64(jsonscan.Pow10[9-places]), nil
		}
		if at, err := parseDate(b); ok && err == nil {
			d.minute, d.start = [seconds]byte(utc), at-at%int64(time.Minute)
		}
	}
	return parseDate(b)
}

// sinceFirstDate returns the milliseconds since the date in the first row.
func (c *csvRows) sinceFirstDate(field []byte) (float64, error) {
	at, err := c.dates.parse(field)
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
