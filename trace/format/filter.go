package format

import (
	"fmt"

	"github.com/bytedance/sonic"

	"moontide/trace"
)

// FilterExtra returns the unknown members of r with each member passed through edit, which gets
// the key and the value as raw JSON and returns what shall stand there, or
// keep == false to leave the member out.
func FilterExtra(r *trace.Request, edit func(key, raw string) (newKey, newRaw string, keep bool)) ([]byte, error) {
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
