package trace

import (
	"bytes"
	"slices"

	"github.com/bytedance/sonic"
)

// Unknown keys that mark lengths of a row as unreliable. Each has an array of
// keys, such as ["input_length"].
const (
	Estimated = "estimated" // estimated from a text, without a tokenizer
	Missing   = "missing"   // absent from the source and written as 0
)

// Marked reports whether mark, [Estimated] or [Missing], lists a length of the
// row: input_length or output_length.
func (r *Request) Marked(mark, length string) bool {
	if !bytes.Contains(r.Extra, []byte(mark)) { // the usual case, fast
		return false
	}
	raw, _ := r.Raw(mark)
	var lengths []string
	return sonic.UnmarshalString(raw, &lengths) == nil && slices.Contains(lengths, length)
}

// Text returns the value of an unknown key if it is a string.
func (r *Request) Text(key string) (string, bool) {
	if len(r.Extra) == 0 {
		return "", false
	}
	node, err := sonic.Get(r.Extra, key)
	if err != nil {
		return "", false
	}
	text, err := node.StrictString()
	return text, err == nil
}

// Raw returns the value of an unknown key as JSON, if present and not null.
func (r *Request) Raw(key string) (string, bool) {
	if len(r.Extra) == 0 {
		return "", false
	}
	node, err := sonic.Get(r.Extra, key)
	if err != nil {
		return "", false
	}
	raw, err := node.Raw()
	return raw, err == nil && raw != "null"
}
