package settings

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/replay/secret"
	"moontide/trace"
)

// Value is a setting that is more than a number or a text.
type Value interface {
	Set(text string) error
	String() string // "" if it is not set
}

// maxDuration is the longest duration of a setting.
const maxDuration = 366 * 24 * time.Hour

// set parses the text of a setting. A repeatable setting gets one more value.
func (row *Setting) set(s *Settings, text string) (err error) {
	if len(row.Choices) > 0 && !row.Open {
		if text, err = row.choice(text); err != nil {
			return err
		}
	}
	switch field := row.Field(s).(type) {
	case *bool:
		if *field, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%.40q is neither true nor false", text)
		}
	case *string:
		if text == "" {
			return errors.New("is empty")
		}
		*field = text
	case *[]string:
		if text = strings.TrimSpace(text); text == "" {
			return errors.New("is empty")
		}
		*field = append(slices.Clip(*field), text)
	case *int:
		n, err := strconv.ParseInt(text, 0, 64)
		if whole, errWhole := strconv.ParseFloat(text, 64); err != nil && errWhole == nil && whole == math.Trunc(whole) && math.Abs(whole) < 1<<53 {
			n, err = int64(whole), nil // 1e6
		}
		if err != nil {
			return fmt.Errorf("%.40q is not a whole number", text)
		}
		*field = int(n)
		return row.Range.check(float64(n), text)
	case *uint64:
		if *field, err = strconv.ParseUint(text, 0, 64); err != nil {
			return fmt.Errorf("%.40q is not a whole number from 0 to %d", text, uint64(math.MaxUint64))
		}
	case *float64:
		*field, err = row.number(text)
		return err
	case *trace.Opt[float64]:
		field.Value, err = row.number(text)
		field.Set = true
		return err
	case *time.Duration:
		if *field, err = ParseDuration(text); err != nil {
			return err
		}
		return row.Range.check(field.Seconds(), text)
	case Value:
		return field.Set(text)
	default:
		panic(fmt.Sprintf("settings: %s is a %T", row.Name, field))
	}
	return nil
}

func (row *Setting) number(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return x, row.Range.check(x, text)
}

// ParseDuration parses a time with a unit, or a number of seconds.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if seconds, errNumber := strconv.ParseFloat(text, 64); errNumber == nil {
		if !(math.Abs(seconds) <= maxDuration.Seconds()) {
			return 0, fmt.Errorf("%.40s s is out of range: use at most %d h", text, int(maxDuration.Hours()))
		}
		d, err = time.Duration(math.Round(seconds*float64(time.Second))), nil
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.40q is not a duration: use a number of seconds, or a unit as in 500ms, 90s, 10m, 1h30m", text)
	case d < 0:
		return 0, fmt.Errorf("%.40s is negative", text)
	case d > maxDuration:
		return 0, fmt.Errorf("%.40s is out of range: use at most %d h", text, int(maxDuration.Hours()))
	}
	return d, nil
}

// choice returns a value in the spelling of the choices. It ignores case, and accepts _ for
// -.
func (row *Setting) choice(text string) (string, error) {
	name := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), "_", "-")
	if name == "" {
		return "", errors.New("is empty")
	}
	var names []string
	for _, c := range row.Choices {
		if names = append(names, c.Name); c.Name == name {
			return name, nil
		}
	}
	return "", fmt.Errorf("%.40q is unknown: use %s", text, listed(names))
}

// listed returns names in words: "a, b or c".
func listed(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
	return strings.Join(names, "")
}

// texts returns the values of a setting as texts that set parses: one, or those of a
// repeatable setting.
func (row *Setting) texts(s *Settings) []string {
	switch field := row.Field(s).(type) {
	case *bool:
		return []string{strconv.FormatBool(*field)}
	case *string:
		return []string{*field}
	case *[]string:
		return *field
	case *int:
		return []string{strconv.Itoa(*field)}
	case *uint64:
		return []string{strconv.FormatUint(*field, 10)}
	case *float64:
		return []string{FormatNumber(*field)}
	case *trace.Opt[float64]:
		if !field.Set {
			return []string{""}
		}
		return []string{FormatNumber(field.Value)}
	case *time.Duration:
		return []string{formatDuration(*field)}
	case *headers:
		return field.Texts()
	case Value:
		return []string{field.String()}
	default:
		panic(fmt.Sprintf("settings: %s is a %T", row.Name, field))
	}
}

// clear gives a setting its default.
func (row *Setting) clear(s *Settings) {
	if field, compound := row.Field(s).(interface{ clear() }); compound {
		field.clear()
		return
	}
	assign(row.Field(s), row.Field(new(Settings)))
}

// assign sets what a pointer points to.
func assign(to, from any) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }

// IsBool reports whether the setting is on or off, so that its name alone turns it on.
func (row *Setting) IsBool() bool {
	_, is := row.Field(new(Settings)).(*bool)
	return is
}

// Repeatable reports whether a setting has several values.
func (row *Setting) Repeatable() bool {
	switch row.Field(new(Settings)).(type) {
	case *[]string, *headers:
		return true
	}
	return false
}

// Text returns the value of a setting as text.
func (row *Setting) Text(s *Settings) string { return strings.Join(row.texts(s), ", ") }

// masked is texts without what may be secret.
func (row *Setting) masked(s *Settings) (texts []string) {
	mask := row.Mask
	if mask == nil {
		mask = secret.Message
	}
	for _, text := range row.texts(s) {
		texts = append(texts, mask(text))
	}
	return texts
}

// Masked returns the value of a setting as text, without what may be secret.
func (row *Setting) Masked(s *Settings) string { return strings.Join(row.masked(s), ", ") }

// FormatNumber formats a number without an exponent, and infinity as inf.
func FormatNumber(x float64) string {
	return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(x, 'f', -1, 64), "+"))
}

// formatDuration formats a duration without zero minutes and seconds at its end.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Range is a range of numbers, or of seconds. The zero Range has no limits.
type Range struct {
	Low, High float64
	Open      bool // without Low
	text      string
}

// String describes the range: "positive".
func (r *Range) String() string { return r.text }

func (r *Range) check(x float64, text string) error {
	switch {
	case r == nil:
		return nil
	case x < r.Low || x > r.High || r.Open && x == r.Low || math.IsNaN(x):
		return fmt.Errorf("must be %s: %.40s", r.text, text)
	}
	return nil
}

var (
	positive       = &Range{0, math.MaxFloat64, true, "positive"}
	notNegative    = &Range{0, math.MaxFloat64, false, "0 or positive"}
	positiveOrInf  = &Range{0, math.Inf(1), true, "positive"}
	share          = &Range{0, 1, true, "above 0 and at most 1"}
	mostConcurrent = fromTo(1, 1_000_000)
)

func fromTo(low, high float64) *Range {
	return &Range{low, high, false, fmt.Sprintf("from %s to %s", FormatNumber(low), FormatNumber(high))}
}

// maxValues limits the values of an axis.
const maxValues = 1000

// Values returns the values of a list such as 1,2,4 for an axis, checked and distinct. Whole
// numbers may be ranges: 1..16, or 4..16..4 with a step.
func (row *Setting) Values(text string) (values []string, err error) {
	if !row.Axis {
		return nil, fmt.Errorf("takes one value, not the list %.60q", text)
	}
	add := func(value string) error {
		var scratch Settings
		if err := row.set(&scratch, value); err != nil {
			return err
		}
		value = row.Text(&scratch)
		switch {
		case slices.Contains(values, value):
			return fmt.Errorf("has %.40s twice", value)
		case len(values) == maxValues:
			return fmt.Errorf("has more than %d values", maxValues)
		}
		values = append(values, value)
		return nil
	}
	var scratch Settings
	_, whole := row.Field(&scratch).(*int)
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); !whole || !strings.Contains(part, "..") {
			if err := add(part); err != nil {
				return nil, err
			}
			continue
		}
		numbers := []int{0, 0, 1} // from, to, step
		words := strings.SplitN(part, "..", 3)
		for i, word := range words {
			if numbers[i], err = strconv.Atoi(strings.TrimSpace(word)); err != nil || numbers[i] < 1 {
				return nil, fmt.Errorf("%.40q is not a range such as 1..16, or 4..16..4 with a step", part)
			}
		}
		if numbers[0] > numbers[1] {
			return nil, fmt.Errorf("the range %.40s is empty", part)
		}
		for n := numbers[0]; n <= numbers[1]; n += numbers[2] {
			if err := add(strconv.Itoa(n)); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// IsList reports whether a text for an axis has several values.
func IsList(text string) bool { return strings.Contains(text, ",") || strings.Contains(text, "..") }
