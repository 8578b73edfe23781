package openai

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"moontide/trace/jsonscan"
)

// ownMessages are the messages of a row, and hashes of their beginnings.
type ownMessages struct {
	list   [][]byte
	hashes []uint64 // of the first 0, 1, ... messages
}

func messagesOf(array string) (m ownMessages) {
	var d xxhash.Digest
	d.Reset()
	m.hashes = append(m.hashes, d.Sum64())
	jsonscan.Elements([]byte(array), func(_ int, message []byte) error {
		m.list = append(m.list, message)
		d.Write(message)
		d.WriteString(",")
		m.hashes = append(m.hashes, d.Sum64())
		return nil
	})
	return m
}

// hash identifies all messages.
func (m *ownMessages) hash() uint64 { return m.hashes[len(m.list)] }

// continueMessages replaces the assistant's messages that follow the messages of an
// earlier row by the answer to that row. A message that calls
// tools stays, because the results follow it. It returns the messages as an array,
// or "" if the messages continue those of no earlier row.
func continueMessages(m ownMessages, e *entry) (array string, err error) {
	some := false
	for base := e.Base; base != nil; base = base.Base {
		sent := &base.Answer.sent
		at := sent.ownLen
		if at == 0 || at >= len(m.list) || m.hashes[at] != sent.own || !plainAnswer(m.list[at]) {
			continue
		}
		if base.Answer.err != nil {
			return "", fmt.Errorf("an earlier answer cannot be carried into this turn: %w", base.Answer.err)
		}
		m.list[at], some = base.Answer.appendMessage(nil, base.Answer.text), true
	}
	if !some {
		return "", nil
	}
	body := []byte{'['}
	for i, message := range m.list {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, message...)
	}
	return string(append(body, ']')), nil
}

// plainAnswer reports whether a message is the assistant's and calls no tool.
func plainAnswer(message []byte) bool {
	var m struct {
		Role  string `json:"role"`
		Calls raw    `json:"tool_calls"`
	}
	return jsonscan.Strict.Unmarshal(message, &m) == nil && m.Role == "assistant" && !nonEmpty(m.Calls)
}
