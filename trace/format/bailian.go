package format

import (
	"fmt"
	"strconv"

	"moontide/trace"
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

func (b *bailianRows) BlockSize() int { return bailianBlock }

func (b *bailianRows) parse(line []byte, r *trace.Request) error {
	ids := r.HashIDs[:0]
	*r = trace.Request{}
	if err := validObject(line); err != nil {
		return err
	}
	var all, recorded object
	var hashes []byte
	chat, parent := int64(-1), int64(-1)
	required := map[string]bool{}
	err := members(line, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "chat_id":
			chat, err = parseChatID(raw)
			required["chat_id"] = true
		case "parent_chat_id":
			parent, err = parseChatID(raw)
		case "timestamp":
			err = set(&r.Timestamp, raw, parseSeconds)
			required["timestamp"] = true
			return keyed("timestamp", err)
		case "input_length":
			r.InputLength, err = parseLength(raw)
			required["input_length"] = true
			return keyed("input_length", err)
		case "output_length":
			r.OutputLength, err = parseLength(raw)
			required["output_length"] = true
			return keyed("output_length", err)
		case "hash_ids":
			hashes = raw // parsed last: the input length bounds them
			return nil
		case "model", "priority":
			all.add(string(key), raw)
			return nil
		}
		recorded.add(string(key), raw)
		return keyed(string(key), err)
	})
	if err != nil {
		return err
	}
	for _, key := range []string{"chat_id", "timestamp", "input_length", "output_length"} {
		if !required[key] {
			return fmt.Errorf("no %s in %s", key, Quote(line))
		}
	}
	if hashes != nil {
		if r.HashIDs, err = parseIDs(hashes, ids, r.InputLength); err != nil {
			return keyed("hash_ids", err)
		}
		chain(r.HashIDs)
	}
	r.SessionID = strconv.FormatInt(b.root(chat, parent), 10)
	all.add("recorded", recorded.bytes())
	r.Extra = all.bytes()
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
