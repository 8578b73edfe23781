package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"moontide/analyze/diff"
	"moontide/trace"
	"moontide/trace/stats"
)

// writeJSON writes v indented, with encoding/json: compiling sonic's encoder costs
// more than it saves for one object.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	err := out.Encode(v)
	if err == nil {
		_, err = w.Write(printable(b.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// printable escapes control characters of terminals that encoders leave as they are, such
// as U+009B.
func printable(text []byte) []byte {
	if !bytes.ContainsFunc(text, controls) {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		switch {
		case !controls(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

func controls(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }

// object is a JSON object with ordered members.
type object []field

type field struct {
	key   string
	value any // as accepted by jsonValue
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	for i, f := range o {
		b.WriteByte("{,"[min(i, 1)])
		if err := out.Encode(f.key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := out.Encode(jsonValue(f.value)); err != nil {
			return nil, err
		}
	}
	if len(o) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (o object) onlyIf(known bool) object {
	for i := range o {
		if !known {
			o[i].value = nil
		}
	}
	return o
}

func objects[T any](all []T, of func(T) object) (list []object) {
	for _, x := range all {
		list = append(list, of(x))
	}
	return list
}

func jsonObject(members map[string]any) map[string]any {
	for key, value := range members {
		members[key] = jsonValue(value)
	}
	return members
}

// jsonValue converts a value: floats have no exponent, intervals are two numbers,
// unknown values null.
func jsonValue(v any) any {
	switch v := v.(type) {
	case float64:
		return number(v)
	case []float64:
		numbers := make([]json.Number, len(v))
		for i, x := range v {
			numbers[i] = number(x)
		}
		return numbers
	case trace.Opt[float64]:
		return orNull(number(v.Value), v.Set)
	case trace.Opt[int]:
		return orNull(v.Value, v.Set)
	case []trace.Opt[float64]:
		var all []any
		for _, x := range v {
			all = append(all, jsonValue(x))
		}
		return all
	case trace.Opt[diff.Interval]:
		return orNull([]json.Number{number(v.Value.Low), number(v.Value.High)}, v.Set)
	case stats.Sample:
		return orNull(sampleJSON(v), v.Count > 0)
	}
	return v
}

// finite returns v, unset if it is infinite or NaN, which JSON cannot represent.
func finite(v trace.Opt[float64]) trace.Opt[float64] {
	v.Set = v.Set && !math.IsInf(v.Value, 0) && !math.IsNaN(v.Value)
	return v
}

func orNull(v any, known bool) any {
	if !known {
		return nil
	}
	return v
}

// number has full precision and no exponent, which some readers reject.
func number(x float64) json.Number { return json.Number(stats.Plain(x)) }
