package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"moontide/trace"
)

// writeJSON writes v indented. It uses encoding/json, because compiling sonic's
// encoder for an object that is written once costs more than it saves.
// Characters of HTML are not escaped.
func writeJSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(v); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// object is a JSON object whose members have an order.
type object []field

type field struct {
	key   string
	value any
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
		if err := out.Encode(f.value); err != nil {
			return nil, err
		}
	}
	if len(o) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// nulls are members that are not known.
func nulls(keys ...string) (o object) {
	for _, key := range keys {
		o = append(o, field{key, nil})
	}
	return o
}

// number is a float that is written without an exponent, which some readers of
// JSON numbers do not accept. It keeps full precision.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'f', -1, 64), nil
}

// numberOf is null where the value is not known.
func numberOf(v trace.Opt[float64]) *number {
	if !v.Set {
		return nil
	}
	return new(number(v.Value))
}

// numberOr is x, or null where it is not known.
func numberOr(x float64, known bool) *number {
	return numberOf(trace.Opt[float64]{Value: x, Set: known})
}

// orNull is n, or null where it is not known.
func orNull(n int, known bool) *int {
	if !known {
		return nil
	}
	return &n
}
