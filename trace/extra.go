package trace

import (
	"fmt"

	"github.com/bytedance/sonic"
)

// FilterExtra returns r.Extra with each member passed through edit, which gets
// the key and the value as raw JSON and returns what shall stand there, or
// keep == false to leave the member out.
func (r *Request) FilterExtra(edit func(key, raw string) (newKey, newRaw string, keep bool)) ([]byte, error) {
	if len(r.Extra) == 0 {
		return nil, nil
	}
	root, err := sonic.Get(r.Extra)
	if err != nil {
		return nil, fmt.Errorf("reading unknown keys: %w", err)
	}
	members, err := membersOf(&root)
	if err != nil {
		return nil, fmt.Errorf("reading unknown keys: %w", err)
	}
	var out []byte
	for _, m := range members {
		if key, raw, keep := edit(m.key, m.raw); keep {
			out = appendMember(out, key, raw)
		}
	}
	if out == nil {
		return nil, nil
	}
	return append(out, '}'), nil
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
