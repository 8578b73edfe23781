package format

import (
	"errors"
	"fmt"
	"time"

	"moontide/trace"
)

// azure is Microsoft's trace of LLM inference services. The releases differ in
// how they spell times: 2023-11-16 18:15:46.6805900 in 2023,
// 2024-05-10 00:00:00.009930+00:00 and, on a full second,
// 2024-05-10 00:00:00+00:00 in 2024. That of 2025 has a column NumImages, too.
var azure = table{
	format:  Azure,
	columns: []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"},
	known:   []string{"NumImages"},
	reader: func(at func(string) int, n *notes) rowReader {
		return &azureRows{
			time: at("TIMESTAMP"), input: at("ContextTokens"), output: at("GeneratedTokens"), images: at("NumImages"),
			notes: n,
		}
	},
}

type azureRows struct {
	time, input, output, images int
	notes                       *notes
	dates                       dates
	begun                       bool
	origin                      int64 // the first arrival, in ns
}

func (a *azureRows) read(fields [][]byte, r *trace.Request) (err error) {
	at, err := a.dates.parse(fields[a.time])
	if err != nil {
		return keyed("TIMESTAMP", err)
	}
	if !a.begun {
		a.begun, a.origin = true, at
		a.notes.say("time 0 is %.40s", fields[a.time])
	}
	if at < a.origin {
		return fmt.Errorf("TIMESTAMP is before that of the first row: %s", Quote(fields[a.time]))
	}
	r.Timestamp = trace.Some(float64(at-a.origin) / float64(time.Millisecond))
	if r.InputLength, err = length(fields[a.input]); err != nil {
		return keyed("ContextTokens", err)
	}
	if r.OutputLength, err = length(fields[a.output]); err != nil {
		return keyed("GeneratedTokens", err)
	}
	if a.images < 0 {
		return nil
	}
	images, err := length(fields[a.images])
	if err != nil {
		return keyed("NumImages", err)
	}
	if images > 0 {
		a.notes.count("requests with images, whose text alone is counted")
		r.Extra = fmt.Appendf(nil, `{"recorded": {"NumImages": %d}}`, images)
	}
	return nil
}

func (a *azureRows) end() {}

// dates reads dates that mostly are of the day of the one before.
type dates struct {
	day      [10]byte
	midnight int64 // of day, in ns since 1970
}

var errNotDate = errors.New("is not a date like 2023-11-16 18:15:46.6805900")

// parse returns a date in nanoseconds since 1970. One without a zone is taken
// for UTC.
func (d *dates) parse(b []byte) (int64, error) {
	wrong := func() (int64, error) { return 0, fmt.Errorf("%w: %s", errNotDate, Quote(b)) }
	const clock = len("2006-01-02 15:04:05")
	if len(b) < clock || b[10] != ' ' && b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return wrong()
	}
	if [10]byte(b[:10]) != d.day {
		day, err := time.Parse(time.DateOnly, string(b[:10]))
		if err != nil || day.Year() < 1970 || day.Year() > 2200 {
			return wrong()
		}
		d.day, d.midnight = [10]byte(b[:10]), day.UnixNano()
	}
	hour, minute, second := twoDigits(b[11:]), twoDigits(b[14:]), twoDigits(b[17:])
	if hour > 23 || minute > 59 || second > 60 {
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

// twoDigits returns the number of two digits, or 100 where they are none.
func twoDigits(b []byte) int {
	tens, ones := b[0]-'0', b[1]-'0'
	if tens > 9 || ones > 9 {
		return 100
	}
	return int(tens)*10 + int(ones)
}

// cutFraction reads up to nine digits behind a point as nanoseconds.
func cutFraction(b []byte) (ns int64, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '.' {
		return 0, b, true
	}
	i := 1
	for unit := int64(time.Second) / 10; i < len(b) && b[i]-'0' <= 9; i++ {
		if unit == 0 {
			return 0, nil, false
		}
		ns += int64(b[i]-'0') * unit
		unit /= 10
	}
	return ns, b[i:], i > 1
}

// parseZone reads nothing, Z, or an offset like +00:00, in nanoseconds.
func parseZone(b []byte) (offset int64, ok bool) {
	switch {
	case len(b) == 0, len(b) == 1 && b[0] == 'Z':
		return 0, true
	case len(b) != len("+00:00") || b[3] != ':' || b[0] != '+' && b[0] != '-':
		return 0, false
	}
	hours, minutes := twoDigits(b[1:]), twoDigits(b[4:])
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	offset = int64(hours*60+minutes) * int64(time.Minute)
	if b[0] == '-' {
		offset = -offset
	}
	return offset, true
}
