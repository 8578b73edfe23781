package openai

import (
	"moontide/replay"
	"moontide/trace/jsonscan"
)

// chunkInfo is the progress of an answer reported by one event.
type chunkInfo struct {
	hasToken bool // text, reasoning or a tool call
	visible  bool // text or a tool call
	finished bool // it has a finish reason
	done     bool // it ends the answer
	choice   bool // it is not only usage
	counted  bool // it has tokens if usage has grown
	tokenIDs int  // number of token ids, if it has those of its tokens only
	usage    usageCounts
}

// tokenEvidence is how a server tells the tokens of a chunk.
type tokenEvidence uint8

const (
	inUsage    tokenEvidence = 1 << iota // usage in each chunk
	inTokenIDs                           // the token ids of each chunk
)

func (info *chunkInfo) tokenEvidence() (e tokenEvidence) {
	if info.choice && info.usage.output.Set {
		e |= inUsage
	}
	if info.tokenIDs > 0 {
		e |= inTokenIDs
	}
	return e
}

// eventReader reads an event of a stream, or an answer that is not streamed, in one
// pass and without allocating. What is not known is skipped.
type eventReader struct {
	c       jsonscan.Cursor
	p       *pieces // that are added to the answer; may be nil
	info    chunkInfo
	failure string // why the answer failed, in the server's words
}

// fail records why the answer failed, unless the server said it.
func (r *eventReader) fail(why string) {
	if r.failure == "" {
		r.failure = why
	}
}

// error reads an error, which may be null.
func (r *eventReader) error() {
	if !null(&r.c) {
		r.failure = errorMessage(r.c.Raw())
	}
}

// failed reports whether the answer failed or the event is malformed, and err says why.
func (r *eventReader) failed() bool { return r.failure != "" || !r.c.Done() }

func (r *eventReader) err(data []byte) error {
	if !r.c.Done() {
		return answerError{replay.Protocol, "event is not one of the API: " + string(data)}
	}
	return answerError{replay.Server, r.failure}
}

// aborted holds the finish reasons of answers that the server aborted, in lower
// case. Their streams continue to [DONE] as if they were complete.
var aborted = map[string]bool{
	"abort":                        true, // vLLM, SGLang
	"aborted":                      true,
	"error":                        true, // vLLM, Dynamo
	"failed":                       true,
	"cancelled":                    true, // TensorRT-LLM
	"canceled":                     true,
	"timeout":                      true, // TensorRT-LLM
	"insufficient_system_resource": true, // DeepSeek
	"network_error":                true,
}

// unescaped returns what a string's text between its quotes says.
func unescaped(text []byte) (said string) {
	jsonscan.Strict.UnmarshalFromString(`"`+string(text)+`"`, &said)
	return said
}
