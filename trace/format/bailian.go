package format

import (
	"fmt"
	"strconv"

	"moontide/trace"
)

// bailianBlock is the tokens of a block in the traces of Alibaba's Bailian.
const bailianBlock = 16

// bailianOwn are the keys that a row has places for.
var bailianOwn = map[string]bool{"timestamp": true, "input_length": true, "output_length": true, "hash_ids": true, "model": true, "priority": true}

// bailianRows reads the traces of Qwen models on Alibaba's Bailian. Times are
// seconds. An id is the hash of a block alone, not of what is before it, so that
// the ids of a row have to be chained. A session is a tree of chats, named by
// its root: it holds one number for each chat of the trace.
type bailianRows struct {
	notes *notes
	roots map[int64]int64 // of chats
	clock clock
}

func newBailian(n *notes) *bailianRows {
	n.say("block ids are chained: the format has hashes of single blocks of %d tokens", bailianBlock)
	return &bailianRows{notes: n, roots: map[int64]int64{}}
}

// BlockSize is the tokens of a block.
func (b *bailianRows) BlockSize() int { return bailianBlock }

func (b *bailianRows) read(line []byte, r *trace.Request) error {
	ids := r.HashIDs[:0]
	*r = trace.Request{}
	if err := validObject(line); err != nil {
		return err
	}
	var all, recorded extra
	var hashes []byte
	chat, parent := int64(-1), int64(-1)
	seen := map[string]bool{}
	err := members(line, func(key []byte, _ int, raw []byte) (err error) {
		seen[string(key)] = true
		switch string(key) {
		case "chat_id":
			chat, err = chatID(raw)
		case "parent_chat_id":
			parent, err = chatID(raw)
		case "timestamp":
			r.Timestamp.Value, err = seconds(raw)
			r.Timestamp.Set = true
		case "input_length":
			r.InputLength, err = ParseLength(string(raw))
		case "output_length":
			r.OutputLength, err = ParseLength(string(raw))
		case "hash_ids":
			hashes = raw // its length is bounded by the prompt's
		case "model", "priority":
			all.add(string(key), raw)
		}
		if !bailianOwn[string(key)] {
			recorded.add(string(key), raw)
		}
		return keyed(string(key), err)
	})
	if err != nil {
		return err
	}
	for _, key := range []string{"chat_id", "timestamp", "input_length", "output_length"} {
		if !seen[key] {
			return fmt.Errorf("no %s in %s", key, Quote(line))
		}
	}
	if hashes != nil {
		if r.HashIDs, err = ParseIDs(string(hashes), ids, r.InputLength); err != nil {
			return keyed("hash_ids", err)
		}
		chain(r.HashIDs)
	}
	b.clock.see(r.Timestamp.Value)
	r.SessionID = strconv.FormatInt(b.root(chat, parent), 10)
	all.add("recorded", recorded.object())
	r.Extra = all.object()
	return nil
}

// root finds the chat that a chat goes back to, and remembers it.
func (b *bailianRows) root(chat, parent int64) int64 {
	root := chat
	if parent >= 0 {
		known := false
		if root, known = b.roots[parent]; !known {
			b.notes.count("rows that follow a chat which is not in the trace before them, whose session is named after it")
			root = parent
		}
	}
	b.roots[chat] = root
	return root
}

func (b *bailianRows) end() {
	if doubt := b.clock.doubt(); doubt != "" {
		b.notes.say("%s", doubt)
	}
}

// chatID reads a chat's number, -1 being none.
func chatID(raw []byte) (int64, error) {
	id, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || id < -1 {
		return 0, fmt.Errorf("is not the number of a chat: %s", Quote(raw))
	}
	return id, nil
}
