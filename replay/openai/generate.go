package openai

import (
	"fmt"

	"moontide/replay"
	"moontide/trace/jsonscan"
)

// generateAPI is SGLang's own API. Each event has all text and token ids so far, or what
// is new, and the counts so far, which tell the tokens of a chunk.
var generateAPI = api{
	name: Generate, path: "/generate", tokenIDs: true, ignoreEOS: true, minTokens: true, limit: "max_new_tokens",
	prompt: func(form string) (before, after string) {
		if form == Tokens {
			return `,"input_ids":`, ""
		}
		return `,"text":`, ""
	},
	layout: func(m members) (l layout) {
		l.head, l.limit = []byte(`{"stream":true`), []byte(`,"sampling_params":{"max_new_tokens":`)
		if m.caps.minTokens {
			l.least = []byte(`,"min_new_tokens":`)
		}
		if m.caps.ignoreEOS {
			l.tail = append(l.tail, `,"ignore_eos":true`...)
		}
		l.tail = append(appendMembers(l.tail, m.sampling...), '}')
		l.tail = append(appendMembers(l.tail, m.extra...), '}')
		return l
	},
	scan: scanGenerateEvent, decode: decodeGenerateEvent, whole: decodeGenerateEvent,
}

func scanGenerateEvent(data []byte, p *pieces) (info chunkInfo, ok bool) {
	c := jsonscan.New(data)
	var seen uint32
	info.counted, info.choice = true, true
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.LowerKey()) {
		case "meta_info":
			c.Once(&seen, 1)
			scanMetaInfo(&c, &info)
		case "text":
			c.Once(&seen, 2)
			p.scanText(&c)
		case "output_ids":
			c.Once(&seen, 4)
			p.scanIDs(&c)
		case "error":
			c.Fail()
		default:
			c.Skip()
		}
	}
	return info, c.Done() && info.usage.output.Set
}

func scanMetaInfo(c *jsonscan.Cursor, info *chunkInfo) {
	var seen uint32
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.LowerKey()) {
		case "prompt_tokens":
			c.Once(&seen, 1)
			scanCount(c, &info.usage.input)
		case "completion_tokens":
			c.Once(&seen, 2)
			scanCount(c, &info.usage.output)
		case "cached_tokens":
			c.Once(&seen, 4)
			scanCount(c, &info.usage.details)
		case "finish_reason":
			c.Null() // or decode
		default:
			c.Skip()
		}
	}
}

// generateEvent holds the decoded members of an event.
type generateEvent struct {
	Text raw `json:"text"`
	IDs  raw `json:"output_ids"`
	Meta struct {
		Input  *float64 `json:"prompt_tokens"`
		Output *float64 `json:"completion_tokens"`
		Cached *float64 `json:"cached_tokens"`
		Finish *struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"finish_reason"`
	} `json:"meta_info"`
	Error raw `json:"error"`
}

func decodeGenerateEvent(data []byte, p *pieces) (info chunkInfo, err error) {
	var e generateEvent
	if err := chunkJSON.Unmarshal(data, &e); err != nil {
		return info, notAnEvent(data)
	}
	m := &e.Meta
	switch {
	case present(e.Error):
		return info, answerError{replay.Server, errorMessage(e.Error)}
	case m.Finish != nil && aborted[m.Finish.Type]:
		return info, answerError{replay.Server, fmt.Sprintf("the server aborted the answer: %s", m.Finish.Message)}
	}
	info = chunkInfo{counted: true, choice: true, finished: m.Finish != nil}
	p.scanText(cursorOf(e.Text))
	p.scanIDs(cursorOf(e.IDs))
	info.usage = usageCounts{input: count(m.Input), output: count(m.Output), details: count(m.Cached)}
	return info, nil
}
