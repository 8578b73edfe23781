package report

import (
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
