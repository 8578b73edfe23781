package openai

import (
	"fmt"

	"moontide/trace/jsonscan"
)

// generateAPI is SGLang's own API. Each event has all token ids so far, or what is new,
// and the counts so far, which tell the tokens of a chunk.
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
	read: readGenerateEvent,
}

func readGenerateEvent(data []byte, p *pieces) (chunkInfo, error) {
	var r eventReader
	r.c, r.p = jsonscan.New(data), p
	c := &r.c
	r.info.counted, r.info.choice = true, true
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "meta_info":
			r.metaInfo()
		case "output_ids":
			p.scanIDs(c)
		case "error":
			r.error()
		default:
			c.Skip()
		}
	}
	if r.failed() {
		return chunkInfo{}, r.err(data)
	}
	return r.info, nil
}

// metaInfo reads the counts, which every event has, and the finish reason.
func (r *eventReader) metaInfo() {
	c, n := &r.c, &r.info.usage
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "prompt_tokens":
			scanCount(c, &n.input)
		case "completion_tokens":
			scanCount(c, &n.output)
		case "cached_tokens":
			scanCount(c, &n.cached)
		case "finish_reason":
			if !null(c) {
				r.generateReason()
			}
		default:
			c.Skip()
		}
	}
}

// generateReason reads the finish reason, an object.
func (r *eventReader) generateReason() {
	var reason struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	r.info.finished = true
	if jsonscan.Strict.Unmarshal(r.c.Raw(), &reason) == nil && aborted[reason.Type] {
		r.fail(fmt.Sprintf("the server aborted the answer: %s", reason.Message))
	}
}
