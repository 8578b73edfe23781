package server

import (
	"fmt"
	"math"
	"strconv"

	"moontide/replay/sim/engine"
)

// api describes the differences between chat and completions.
type api struct {
	readPrompt  func(*wireRequest, tokens) *apiError
	promptParam string
	maxTokens   int // default

	idPrefix     string
	object       string // object type of a non-streaming response
	chunkObject  string
	wholeOpening string // start of the choice, up to the text
	roleChoice   string // chunk before the first token; may be ""
	tokenOpening string // start of a chunk's choice, up to the text
	closing      string // end of any choice, from the text to the finish reason
}

var chatAPI = api{
	readPrompt:  readChat,
	promptParam: "messages",
	maxTokens:   math.MaxInt,

	idPrefix:     "chatcmpl-",
	object:       "chat.completion",
	chunkObject:  "chat.completion.chunk",
	wholeOpening: `{"index":0,"message":{"role":"assistant","content":"`,
	roleChoice:   `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`,
	tokenOpening: `{"index":0,"delta":{"content":"`,
	closing:      `"},"logprobs":null,"finish_reason":`,
}

var completionAPI = api{
	readPrompt:  readCompletion,
	promptParam: "prompt",
	maxTokens:   16, // as in OpenAI and vLLM

	idPrefix:     "cmpl-",
	object:       "text_completion",
	chunkObject:  "text_completion",
	wholeOpening: `{"index":0,"text":"`,
	tokenOpening: `{"index":0,"text":"`,
	closing:      `","logprobs":null,"finish_reason":`,
}

// answer encodes an answer as JSON. It does so without a library because events
// must be very cheap, and all strings are quoted already or need no escaping.
type answer struct {
	api     *api
	id      string
	created int64  // Unix time in seconds
	model   string // quoted
	seed    uint64 // seed of the words
	finish  finish
	// Usage is sent in an event after the last token, or in each event.
	includeUsage, continuousUsage bool
	stamped                       bool // each event has the time of its writing

	opening []byte // start of every event of a stream, up to the text
	head    int    // length of opening before the choice
}

// words lists the generated tokens, each one word of text.
var words = [...]string{
	" a", " all", " am", " an", " and", " any", " are", " as",
	" at", " be", " but", " by", " can", " day", " did", " do",
	" end", " far", " few", " for", " get", " go", " had", " has",
	" he", " her", " him", " his", " how", " if", " in", " is",
	" it", " its", " just", " kind", " let", " like", " long", " made",
	" many", " may", " me", " more", " my", " no", " not", " now",
	" of", " on", " one", " or", " our", " out", " she", " so",
	" that", " the", " then", " they", " this", " to", " we", " you",
}

// wordTokens holds the words as prompt tokens.
var wordTokens = func() (tokens [len(words)]uint64) {
	for i, word := range words {
		tokens[i] = engine.WordToken(word[1:])
	}
	return tokens
}()

// wordIndex returns the index of the word for token k of an answer. The odd
// stride visits all words before repeating one.
func wordIndex(seed uint64, k int) int {
	return int((seed + uint64(k)*37) % uint64(len(words)))
}

func (a *answer) word(k int) string { return words[wordIndex(a.seed, k)] }

// text returns the text of token k as sent to the client.
func (a *answer) text(k int) string {
	switch f := &a.finish; {
	case k < f.whole:
		return a.word(k)
	case k == f.whole:
		return f.tail
	}
	return ""
}

func (a *answer) appendHead(b []byte, object string) []byte {
	return fmt.Appendf(b, `{"id":"%s","object":"%s","created":%d,"model":%s,"choices":[`, a.id, object, a.created, a.model)
}

// usage holds the number of prompt tokens and of cached tokens among them.
type usage struct{ prompt, cached int }

// append appends the usage member for an answer of the given number of tokens.
func (u usage) append(b []byte, tokens int) []byte {
	b = append(b, `,"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.prompt+tokens), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(tokens), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	return append(b, `}}`...)
}

// appendFinish appends the finish reason and closes the choice.
func (a *answer) appendFinish(b []byte) []byte {
	b = append(b, '"')
	b = append(b, a.finish.reason...)
	b = append(b, `","stop_reason":`...)
	if a.finish.stop == "" {
		return append(b, `null}]`...)
	}
	b = append(b, quoted(a.finish.stop)...)
	return append(b, `}]`...)
}

// whole encodes a non-streaming response.
func (a *answer) whole(u usage) []byte {
	b := a.appendHead(nil, a.api.object)
	b = append(b, a.api.wholeOpening...)
	for k := range min(a.finish.tokens, a.finish.whole+1) {
		b = append(b, a.text(k)...)
	}
	b = append(b, a.api.closing...)
	b = a.appendFinish(b)
	b = u.append(b, a.finish.tokens)
	return append(b, '}')
}

// startStream must be called before the methods below.
func (a *answer) startStream() {
	b := append(make([]byte, 0, 256), "data: "...)
	b = a.appendHead(b, a.api.chunkObject)
	a.head = len(b)
	a.opening = append(b, a.api.tokenOpening...)
}

// appendToken appends the event of token k, preceded by the role event for the
// first token. A token without text has no event unless it is the last.
func (a *answer) appendToken(b []byte, k int, u usage, stamp int64) []byte {
	if k == 0 && a.api.roleChoice != "" {
		b = append(b, a.opening[:a.head]...)
		b = append(b, a.api.roleChoice...)
		b = a.closeToken(b, 0, u, stamp)
	}
	text, last := a.text(k), k == a.finish.tokens-1
	if text == "" && !last {
		return b
	}
	b = append(b, a.opening...)
	b = append(b, text...)
	b = append(b, a.api.closing...)
	if last {
		b = a.appendFinish(b)
	} else {
		b = append(b, "null}]"...)
	}
	return a.closeToken(b, k+1, u, stamp)
}

// closeToken closes an event; tokens is the number of tokens sent so far.
func (a *answer) closeToken(b []byte, tokens int, u usage, stamp int64) []byte {
	if a.continuousUsage {
		b = u.append(b, tokens)
	}
	return a.closeEvent(b, stamp)
}

// appendEnd appends the end of the stream after the event of the last token.
func (a *answer) appendEnd(b []byte, u usage, stamp int64) []byte {
	if a.includeUsage {
		b = append(b, a.opening[:a.head]...)
		b = append(b, ']')
		b = u.append(b, a.finish.tokens)
		b = a.closeEvent(b, stamp)
	}
	return append(b, "data: [DONE]\n\n"...)
}

func (a *answer) closeEvent(b []byte, stamp int64) []byte {
	if a.stamped {
		b = append(b, `,"written_ns":`...)
		b = strconv.AppendInt(b, stamp, 10)
	}
	return append(b, "}\n\n"...)
}
