package format

import (
	"fmt"
	"strconv"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// bailianBlock is the block size of Bailian traces in tokens.
const bailianBlock = 16

// bailianRows parses the traces of Qwen models on Alibaba's Bailian. Times are
// seconds. A block id is the hash of that block alone, so the ids of a row are
// chained. A session is a tree of chats and has the id of its root.
type bailianRows struct {
	notes *notes
	roots map[int64]int64 // root of each chat
}

func newBailian(n *notes) *bailianRows {
	n.say("block ids are chained: the trace has hashes of single blocks of %d tokens", bailianBlock)
	return &bailianRows{notes: n, roots: map[int64]int64{}}
}

func (b *bailianRows) parse(line []byte, r *trace.Request) error {
	ids := r.HashIDs[:0]
	*r = trace.Request{}
	var all, recorded jsonscan.Object
	var hashes []byte // parsed last: the input length bounds them
	var kind string
	chat, parent := int64(-1), int64(-1)
	known := func(key string) field {
		return func(_ int, raw []byte) error { all.Add(key, raw); return nil }
	}
	err := readRow(line, keys{
		{"timestamp", optional(&r.Timestamp, parseSeconds)},
		{"input_length", into(&r.InputLength, parseLength)},
		{"output_length", into(&r.OutputLength, parseLength)},
		{"hash_ids", into(&hashes, parseAnything)},
		{"model", known("model")},
		{"priority", known("priority")},
	}, keys{
		{"chat_id", into(&chat, parseChatID)},
		{"parent_chat_id", into(&parent, parseChatID)},
		{"type", into(&kind, func(raw []byte) (string, error) { return string(raw), nil })},
	}, &recorded, "chat_id", "timestamp", "input_length", "output_length")
	if kind == `"thinking"` {
		b.notes.count("rows of type thinking, whose responses include reasoning that later prompts leave out")
	}
	if err != nil {
		return err
	}
	if hashes != nil {
		if r.HashIDs, err = parseIDs(hashes, ids, r.InputLength); err != nil {
			return keyed("hash_ids", err)
		}
		chain(r.HashIDs)
	}
	r.SessionID = strconv.FormatInt(b.root(chat, parent), 10)
	all.Add("recorded", recorded.Bytes())
	r.Extra = all.Bytes()
	return nil
}

// root finds and remembers the root of a chat.
func (b *bailianRows) root(chat, parent int64) int64 {
	root := chat
	if parent >= 0 {
		known := false
		if root, known = b.roots[parent]; !known {
			b.notes.count("rows whose parent chat is not in the trace before them, with the parent as their session")
			root = parent
		}
	}
	b.roots[chat] = root
	return root
}

// parseChatID parses the number of a chat, or -1 for none.
func parseChatID(raw []byte) (int64, error) {
	id, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || id < -1 {
		return 0, fmt.Errorf("is not a chat number: %s", Quote(raw))
	}
	return id, nil
}
