package report

import (
	"fmt"
	"io"
	"strconv"

	"github.com/bytedance/sonic"

	"moontide/trace"
)

// encoding is strict about strings, as sonic's default is not: a name that is
// not UTF-8 must still give valid JSON. Characters of HTML stay as they are;
// who puts the text into a page has to escape it.
var encoding = sonic.Config{
	SortMapKeys:    true,
	ValidateString: true,
	CopyString:     true,
}.Froze()

// writeJSON writes v as one indented JSON object.
func writeJSON(w io.Writer, v any) error {
	text, err := encoding.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding report: %w", err)
	}
	return write(w, append(text, '\n'))
}

// number is a float that never shows an exponent, which some readers of JSON
// numbers do not take. It keeps full precision.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'f', -1, 64), nil
}

func numberOf(v trace.Opt[float64]) *number {
	if !v.Set {
		return nil
	}
	return new(number(v.Value))
}

// orNull is n where it is known.
func orNull(n int, known bool) *int {
	if !known {
		return nil
	}
	return &n
}
