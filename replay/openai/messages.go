package openai

import (
	"slices"

	"moontide/replay"
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
	scan: scanMessagesEvent, decode: decodeMessagesEvent, whole: decodeWholeMessage,
}

// scanMessagesEvent reads the events of tokens: a delta of a block has text or the
// input of a tool, or thinking.
func scanMessagesEvent(data []byte, p *pieces) (info chunkInfo, ok bool) {
	c := jsonscan.New(data)
	var seen uint32
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.LowerKey()) {
		case "type":
			c.Once(&seen, 1)
			info.choice = string(c.PlainText()) == "content_block_delta"
		case "delta":
			c.Once(&seen, 2)
			scanBlockDelta(&c, &info, p)
		case "message", "usage", "error":
			c.Fail()
		default:
			c.Skip()
		}
	}
	return info, c.Done() && info.choice
}

func scanBlockDelta(c *jsonscan.Cursor, info *chunkInfo, p *pieces) {
	var seen uint32
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.LowerKey()) {
		case "text":
			c.Once(&seen, 1)
			info.visible = p.scanText(c)
			info.hasToken = info.hasToken || info.visible
		case "partial_json":
			c.Once(&seen, 1)
			info.visible = p.scanCall(c)
			info.hasToken = info.hasToken || info.visible
		case "thinking":
			c.Once(&seen, 2)
			info.hasToken = p.scanReasoning(c) || info.hasToken
		default:
			c.Skip()
		}
	}
}

// messagesEvent holds the decoded members of an event.
type messagesEvent struct {
	Type  string `json:"type"`
	Delta struct {
		Text       raw `json:"text"`
		Input      raw `json:"partial_json"`
		Thinking   raw `json:"thinking"`
		StopReason raw `json:"stop_reason"`
	} `json:"delta"`
	Message struct {
		Usage *messagesUsage `json:"usage"`
	} `json:"message"`
	Usage *messagesUsage `json:"usage"`
	Error raw            `json:"error"`
}

// messagesUsage counts input tokens by how they were cached.
type messagesUsage struct {
	Input      *float64 `json:"input_tokens"`
	CacheRead  *float64 `json:"cache_read_input_tokens"`
	CacheWrite *float64 `json:"cache_creation_input_tokens"`
	Output     *float64 `json:"output_tokens"`
}

func (u *messagesUsage) counts() (n usageCounts) {
	if u == nil {
		return n
	}
	n = usageCounts{input: count(u.Input), details: count(u.CacheRead), output: count(u.Output)}
	if n.input.Set {
		n.input.Value = int32(min(int64(n.input.Value)+int64(n.details.Value)+int64(count(u.CacheWrite).Value), maxCount))
	}
	return n
}

func decodeMessagesEvent(data []byte, p *pieces) (info chunkInfo, err error) {
	var e messagesEvent
	if err := chunkJSON.Unmarshal(data, &e); err != nil {
		return info, notAnEvent(data)
	}
	if present(e.Error) {
		return info, answerError{replay.Server, errorMessage(e.Error)}
	}
	switch e.Type {
	case "message_start":
		info.usage = e.Message.Usage.counts()
		info.usage.output.Set = false // of no token yet
	case "content_block_delta":
		info.choice = true
		info.visible = p.scanCall(cursorOf(e.Delta.Input)) || p.scanText(cursorOf(e.Delta.Text))
		info.hasToken = p.scanReasoning(cursorOf(e.Delta.Thinking)) || info.visible
	case "message_delta":
		info.usage = e.Usage.counts()
		info.finished = nonEmpty(e.Delta.StopReason)
	case "message_stop":
		info.done = true
	}
	return info, nil
}

func decodeWholeMessage(body []byte, _ *pieces) (info chunkInfo, err error) {
	var e messagesEvent
	if err := chunkJSON.Unmarshal(body, &e); err != nil {
		return info, notAnEvent(body)
	}
	if present(e.Error) {
		return info, answerError{replay.Server, errorMessage(e.Error)}
	}
	return chunkInfo{usage: e.Usage.counts()}, nil
}
