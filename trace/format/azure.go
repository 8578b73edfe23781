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
	first    int64 // ns since 1970
	begun    bool
	day      [len(time.DateOnly)]byte // of the previous date
	midnight int64                    // of day, in ns since 1970
	hasDay   bool
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
// The standard library parses only the day, which few rows change.
func (d *dateParser) parse(b []byte) (int64, error) {
	wrong := func() (int64, error) { return 0, fmt.Errorf("%w: %s", errNotDate, Quote(b)) }
	const clock = len(time.DateTime)
	if len(b) < clock || b[10] != ' ' && b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return wrong()
	}
	if day := [len(d.day)]byte(b); (day != d.day || !d.hasDay) && !d.setDay(day) {
		return wrong()
	}
	hour, minute, second := twoDigits(b[11:]), twoDigits(b[14:]), twoDigits(b[17:])
	if hour > 23 || minute > 59 || second > 60 { // 60 is a leap second
		return wrong()
	}
	at := d.midnight + int64((hour*60+minute)*60+second)*int64(time.Second)
	fraction, zone, ok := cutFraction(b[clock:])
	offset, okZone := parseZone(zone)
	if !ok || !okZone {
		return wrong()
	}
	return at + fraction - offset, nil
}

// setDay sets day and midnight.
func (d *dateParser) setDay(day [len(time.DateOnly)]byte) bool {
	midnight, err := time.Parse(time.DateOnly, string(day[:]))
	if err != nil || midnight.Year() < 1970 || midnight.Year() > 2200 {
		return false
	}
	d.day, d.midnight, d.hasDay = day, midnight.UnixNano(), true
	return true
}

// twoDigits returns the number of two digits, 100 if they are not digits.
func twoDigits(b []byte) int {
	tens, ones := b[0]-'0', b[1]-'0'
	if tens > 9 || ones > 9 {
		return 100
	}
	return int(tens)*10 + int(ones)
}

// cutFraction cuts a point and up to nine digits, if any, off the text and returns
// them in nanoseconds.
func cutFraction(b []byte) (ns int64, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '.' {
		return 0, b, true
	}
	i, unit := 1, uint64(time.Second)
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		unit /= 10
		ns += int64(uint64(b[i]-'0') * unit)
	}
	return ns, b[i:], i > 1 && unit > 0
}

// parseZone parses no text, Z, or an offset like +00:00, in nanoseconds.
func parseZone(b []byte) (offset int64, ok bool) {
	switch {
	case len(b) == 0, len(b) == 1 && b[0] == 'Z':
		return 0, true
	case len(b) != len("+00:00") || b[3] != ':' || b[0] != '+' && b[0] != '-':
		return 0, false
	}
	hours, minutes := twoDigits(b[1:]), twoDigits(b[4:])
	offset = int64(hours*60+minutes) * int64(time.Minute)
	if b[0] == '-' {
		offset = -offset
	}
	return offset, hours < 24 && minutes < 60
}
