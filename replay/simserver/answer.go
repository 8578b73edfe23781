package simserver

import (
	"math"
	"strconv"
)

// api is what differs between the two ways to ask for an answer.
type api struct {
	readPrompt  func(*wireRequest, *Prompt) *apiError
	promptParam string
	maxTokens   int // of an answer whose request does not say

	idPrefix     string
	object       string // of a whole answer
	chunkObject  string
	wholeOpening string // of the only choice, up to the text
	roleChoice   string // of a chunk before the first token, or ""
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
	roleChoice:   `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
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

// answer writes one answer as JSON. That is done by hand: all its strings are
// known to need no escaping or are quoted already, and an event of a stream
// must cost next to nothing.
type answer struct {
	api          *api
	timeline     *Timeline
	seed         uint64 // chooses the words
	id           string
	created      int64  // Unix time in seconds
	model        string // quoted
	includeUsage bool

	head []byte // of every event, up to its choices; set by startStream
}

// words are the tokens that are generated: short, and each one word for a
// client that counts words.
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

// word is token k. An odd stride goes through all words before it repeats one.
func (a *answer) word(k int) string {
	return words[(a.seed+uint64(k)*37)%uint64(len(words))]
}

func (a *answer) appendHead(b []byte, object string) []byte {
	b = append(b, `{"id":"`...)
	b = append(b, a.id...)
	b = append(b, `","object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, a.created, 10)
	b = append(b, `,"model":`...)
	b = append(b, a.model...)
	return append(b, `,"choices":[`...)
}

func (a *answer) appendUsage(b []byte) []byte {
	t := a.timeline
	b = append(b, `],"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(t.Prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(t.Prompt+t.Tokens), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(t.Tokens), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(t.Cached), 10)
	return append(b, `}}}`...)
}

func (a *answer) appendFinish(b []byte) []byte {
	b = append(b, '"')
	b = append(b, a.timeline.Finish...)
	return append(b, `","stop_reason":null}`...)
}

// whole is the answer to a request that is not streamed.
func (a *answer) whole() []byte {
	b := a.appendHead(nil, a.api.object)
	b = append(b, a.api.wholeOpening...)
	for k := range a.timeline.Tokens {
		b = append(b, a.word(k)...)
	}
	b = append(b, a.api.closing...)
	b = a.appendFinish(b)
	return a.appendUsage(b)
}

// startStream has to be called before appendEvents.
func (a *answer) startStream() {
	a.head = a.appendHead([]byte("data: "), a.api.chunkObject)
}

// appendEvents appends what is sent when token k is there: its event, before
// the first the one that opens a chat, and after the last those that end the
// stream.
func (a *answer) appendEvents(b []byte, k int) []byte {
	if k == 0 && a.api.roleChoice != "" {
		b = append(b, a.head...)
		b = append(b, a.api.roleChoice...)
		b = append(b, "\n\n"...)
	}
	b = append(b, a.head...)
	b = append(b, a.api.tokenOpening...)
	b = append(b, a.word(k)...)
	b = append(b, a.api.closing...)
	if k < a.timeline.Tokens-1 {
		return append(b, "null}]}\n\n"...)
	}
	b = a.appendFinish(b)
	b = append(b, "]}\n\n"...)
	if a.includeUsage {
		b = append(b, a.head...)
		b = a.appendUsage(b)
		b = append(b, "\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}
