package trace

import (
	"bytes"
	"slices"

	"github.com/bytedance/sonic"
)

// Unknown key names that say how far a row's lengths can be relied on: each holds
// an array of the keys of lengths.
const (
	Estimated = "estimated" // from a text, without its tokenizer
	Missing   = "missing"   // written as 0, for the source does not say it
)

// Marked reports whether the unknown key mark, [Estimated] or [Missing], names a
// length of the row: input_length or output_length.
func (r *Request) Marked(mark, length string) bool {
	if !bytes.Contains(r.Extra, []byte(mark)) { // which few rows have
		return false
	}
	raw, _ := r.Raw(mark)
	var lengths []string
	return sonic.UnmarshalString(raw, &lengths) == nil && slices.Contains(lengths, length)
}

// Text returns the string that the unknown key holds, if it is there and is a
// string.
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

// Raw returns the JSON that the unknown key holds, if it is there and is not
// null.
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
