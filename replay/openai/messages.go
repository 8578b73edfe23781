package openai

import (
	"slices"

	"moontide/trace/jsonscan"
)

// messagesAPI is Anthropic's Messages API. Its answers are blocks of text, of
// thinking and of calls of tools.
var messagesAPI = api{
	name: Messages, path: "/v1/messages", messages: "messages", limit: maxTokens,
	headers: []Header{{"anthropic-version", "2023-06-01"}},
	prompt:  chatAPI.prompt,
	layout: func(m members) (l layout) {
		l.head, l.limit = m.open(), []byte(`,"max_tokens":`)
		l.tail = append(appendMembers([]byte(`,"stream":true`), slices.Concat(m.extra, m.sampling)...), '}')
		return l
	},
	read: readMessagesEvent,
}

// readMessagesEvent reads an event, or a whole message.
func readMessagesEvent(data []byte, p *pieces) (chunkInfo, error) {
	var r eventReader
	r.c, r.p = jsonscan.New(data), p
	c, info := &r.c, &r.info
	var kind []byte
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "type":
			kind = c.Text()
		case "delta":
			r.blockDelta()
		case "message":
			r.message()
		case "usage":
			r.usage()
		case "error":
			r.error()
		default:
			c.Skip()
		}
	}
	switch string(kind) {
	case "content_block_delta":
		info.choice = true
	case "message_start":
		info.usage.output.Set = false // of no token yet
	case "message_stop":
		info.done = true
	}
	if r.failed() {
		return chunkInfo{}, r.err(data)
	}
	return r.info, nil
}

// blockDelta reads what a block gets, text, the input of a tool or thinking, or why the
// message stops.
func (r *eventReader) blockDelta() {
	c, info := &r.c, &r.info
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "text":
			info.visible = r.p.scanText(c)
			info.hasToken = info.hasToken || info.visible
		case "partial_json":
			info.visible = r.p.scanCall(c)
			info.hasToken = info.hasToken || info.visible
		case "thinking":
			info.hasToken = r.p.scanReasoning(c) || info.hasToken
		case "stop_reason":
			info.finished = c.Skip()
		default:
			c.Skip()
		}
	}
}

// message reads the message at the start of a stream.
func (r *eventReader) message() {
	for more := r.c.Open('{'); more; more = r.c.More('}') {
		if string(r.c.Key()) == "usage" {
			r.usage()
		} else {
			r.c.Skip()
		}
	}
}
