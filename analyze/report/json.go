package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"moontide/trace/stats"
)

// writeJSON writes v indented.
func writeJSON(w io.Writer, v any) error {
	text, err := plainJSON(v)
	if err == nil {
		_, err = w.Write(text)
	}
	if err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// plainJSON returns v indented, with encoding/json: compiling sonic's encoder costs more
// than it saves for one object. Numbers have no exponent, which some readers reject.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	err := out.Encode(v)
	return printable(exponents.ReplaceAllFunc(b.Bytes(), plain)), err
}

// exponents finds numbers with an exponent, which end their lines.
var exponents = regexp.MustCompile(`[-0-9.]+e[-+][0-9]+,?(\n|$)`)

func plain(number []byte) []byte {
	text := bytes.TrimRight(number, ",\n")
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return number
	}
	return append([]byte(stats.Plain(x)), number[len(text):]...)
}

// printable escapes control characters of terminals that encoders leave as they are, such
// as U+009B.
func printable(text []byte) []byte {
	if !bytes.ContainsFunc(text, controls) {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		if !controls(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

func controls(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }

// object is a JSON object with ordered members.
type object []field

type field struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	out := json.NewEncoder(b)
	out.SetEscapeHTML(false)
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:", f.key)
		if err := out.Encode(f.value); err != nil {
			return nil, err
		}
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

func orNull(v any, known bool) any {
	if !known {
		return nil
	}
	return v
}
