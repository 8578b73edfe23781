package server

import (
	"fmt"
	"math"
	"strconv"

	"moontide/replay/sim/engine"
)

// api is what differs between chat and completions.
type api struct {
	readPrompt  func(*wireRequest, tokens) *apiError
	promptParam string
	maxTokens   int // by default

	idPrefix     string
	object       string // of an answer that is not streamed
	chunkObject  string
	wholeOpening string // of the choice, up to the text
	roleChoice   string // of a chunk before the first token; may be ""
	tokenOpening string // of a chunk's choice, up to the text
	closing      string // of any choice, from the text to the finish reason
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
	maxTokens:   16, // as OpenAI and vLLM have it

	idPrefix:     "cmpl-",
	object:       "text_completion",
	chunkObject:  "text_completion",
	wholeOpening: `{"index":0,"text":"`,
	tokenOpening: `{"index":0,"text":"`,
	closing:      `","logprobs":null,"finish_reason":`,
}

// answer encodes an answer as JSON, by hand: an event must cost next to nothing,
// and all strings need no escaping or are quoted already.
type answer struct {
	api     *api
	id      string
	created int64  // Unix time in seconds
	model   string // quoted
	seed    uint64 // of the words
	finish  finish
	// Usage comes in an event after the last token, or in each event.
	includeUsage, continuousUsage bool
	stamped                       bool // each event has the instant of its writing

	opening []byte // of every event of a stream, up to the text
	head    int    // length of the part before the choice
}

// words are the generated tokens, each one word of text.
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

// wordTokens are the words as tokens of a prompt.
var wordTokens = func() (tokens [len(words)]uint64) {
	for i, word := range words {
		tokens[i] = engine.WordToken(word[1:])
	}
	return tokens
}()

// wordIndex is the index of the word that is token k of an answer. The odd stride
// goes through all words before one repeats.
func wordIndex(seed uint64, k int) int {
	return int((seed + uint64(k)*37) % uint64(len(words)))
}

func (a *answer) word(k int) string { return words[wordIndex(a.seed, k)] }

// text is the text of token k that the client gets.
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

// usage is the number of tokens of a prompt and of cached ones among them.
type usage struct{ prompt, cached int }

// append appends the member for an answer of so many tokens.
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

// appendFinish appends why the answer ended, and closes the choice.
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

// whole encodes an answer that is not streamed.
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

// appendToken appends the event of token k, before the first token that of the
// role. A token without text has no event unless it is the last.
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

// closeToken closes an event, with which so many tokens have come.
func (a *answer) closeToken(b []byte, tokens int, u usage, stamp int64) []byte {
	if a.continuousUsage {
		b = u.append(b, tokens)
	}
	return a.closeEvent(b, stamp)
}

// appendEnd appends what follows the event of the last token.
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
