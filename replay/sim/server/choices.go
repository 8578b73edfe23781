package server

import (
	"fmt"
	"math"

	"github.com/valyala/fasthttp"

	"moontide/trace/jsonscan"
)

// choices encodes the answers of chat and completions, which have one choice.
type choices struct {
	object, chunkObject   string // object types of an answer and of an event
	wholeOpening          string // start of the choice of a whole answer, up to the visible text
	wholeThinking         string // the same, up to reasoning
	thinkingEnd           string // between reasoning and visible text
	role                  string // choice of the event before the first token; may be ""
	opening, thinkOpening string // start of an event's choice, up to the text
	closing               string // end of any choice, from the text to the finish reason
}

func (*choices) appendHead(b []byte, a *answer, object string) []byte {
	return fmt.Appendf(b, `{"id":"%s%s","object":"%s","created":%d,"model":%s,"choices":[`, a.api.idPrefix, a.id, object, a.created, a.model)
}

// appendUsage appends the usage of an answer of the given number of tokens.
func (*choices) appendUsage(b []byte, a *answer, u usage, tokens int) []byte {
	b = appendMember(b, `,"usage":{"prompt_tokens":`, u.prompt)
	b = appendMember(b, `,"total_tokens":`, u.prompt+tokens)
	b = appendMember(b, `,"completion_tokens":`, tokens)
	b = appendMember(b, `,"prompt_tokens_details":{"cached_tokens":`, u.cached)
	if a.reasoning > 0 {
		b = appendMember(b, `},"completion_tokens_details":{"reasoning_tokens":`, min(tokens, a.reasoning))
	}
	return append(b, `}}`...)
}

// appendFinish appends the finish reason and closes the choice.
func (*choices) appendFinish(b []byte, a *answer) []byte {
	b = append(append(b, '"'), a.reason...)
	return append(b, `","stop_reason":null}]`...)
}

func (c *choices) appendWhole(b []byte, a *answer, u usage) []byte {
	b = c.appendHead(b, a, c.object)
	if a.reasoning > 0 {
		b = append(b, c.wholeThinking...)
		b = a.appendWords(b, 0, a.reasoning)
		b = append(b, c.thinkingEnd...)
	} else {
		b = append(b, c.wholeOpening...)
	}
	b = a.appendWords(b, a.reasoning, a.tokens)
	b = append(b, c.closing...)
	b = c.appendFinish(b, a)
	b = a.addIDs(b, 0, a.tokens)
	b = c.appendUsage(b, a, u, a.tokens)
	return append(b, '}')
}

func (c *choices) begin(a *answer) {
	b := append(make([]byte, 0, 512), "data: "...)
	a.head = c.appendHead(b, a, c.chunkObject)
	n := len(a.head)
	b = append(a.head, c.opening...)
	m := len(b)
	a.opening = b[:m:m]
	if a.reasoning > 0 {
		b = append(append(b, a.head...), c.thinkOpening...)
		a.thinking = b[m:]
	}
	a.head = a.head[:n:n]
}

func (*choices) appendAccepted(b []byte, _ *answer, _ int64) []byte { return b }

// addIDs adds the ids of tokens to the choice that has just been closed, if they were
// asked for.
func (a *answer) addIDs(b []byte, from, upTo int) []byte {
	if !a.tokenIDs {
		return b
	}
	const end = "}]"
	b = append(b[:len(b)-len(end)], `,"token_ids":[`...)
	return append(append(a.appendIDs(b, from, upTo), ']'), end...)
}

// appendToken appends the event of token k, preceded by the role event for the
// first token.
func (c *choices) appendToken(b []byte, a *answer, k int, u usage, stamp int64) []byte {
	if k == 0 && c.role != "" {
		b = append(b, a.head...)
		b = append(b, c.role...)
		b = c.closeChunk(b, a, 0, u, stamp)
	}
	b = append(b, a.tokenOpening(k)...)
	b = append(b, a.word(k)...)
	b = append(b, c.closing...)
	if k == a.tokens-1 {
		b = c.appendFinish(b, a)
	} else {
		b = append(b, "null}]"...)
	}
	b = a.addIDs(b, k, k+1)
	return c.closeChunk(b, a, k+1, u, stamp)
}

// closeChunk closes an event; tokens is the number of tokens sent so far.
func (c *choices) closeChunk(b []byte, a *answer, tokens int, u usage, stamp int64) []byte {
	if a.continuousUsage {
		b = c.appendUsage(b, a, u, tokens)
	}
	return a.closeEvent(b, stamp)
}

func (c *choices) appendEnd(b []byte, a *answer, u usage, stamp int64) []byte {
	if a.includeUsage {
		b = append(b, a.head...)
		b = append(b, ']')
		b = c.appendUsage(b, a, u, a.tokens)
		b = a.closeEvent(b, stamp)
	}
	return append(b, streamDone...)
}

func (*choices) appendError(b []byte, a *answer, e *apiError, _ int64) []byte {
	return appendErrorEvent(b, a, e)
}

// appendErrorEvent appends an error as an event without a name, as vLLM and SGLang
// do, and the end of the stream.
func appendErrorEvent(b []byte, a *answer, e *apiError) []byte {
	b = append(b, "data: "...)
	b = append(b, e.encode(a.api)...)
	return append(b, "\n\n"+streamDone...)
}

// openAIError is the body of an error of OpenAI's APIs.
func openAIError(e *apiError) any {
	type detail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	d := detail{Message: e.message, Type: "invalid_request_error"}
	switch {
	case e.status >= fasthttp.StatusInternalServerError:
		d.Type = "server_error"
	case e.status == fasthttp.StatusTooManyRequests:
		d.Type = "rate_limit_error"
	}
	if e.param != "" {
		d.Param = &e.param
	}
	if e.code != "" {
		d.Code = &e.code
	}
	return map[string]detail{"error": d}
}

// choiceParameters reads the parameters of chat and completions.
func choiceParameters(w *wireRequest) (parameters, *apiError) {
	p := w.openParameters()
	p.maxTokens = []parameter{w.get("max_tokens"), w.get("max_completion_tokens")}
	p.streamOptions = w.get("stream_options")
	return p, w.get("response_format").textOnly()
}

// textOnly refuses a format of answers other than text.
func (p parameter) textOnly() *apiError {
	var f struct {
		Type string `json:"type"`
	}
	if err := p.decode("an object", &f); err != nil {
		return err
	}
	if !p.absent() && f.Type != "text" {
		return notSupported(p.name)
	}
	return nil
}

// chatAPI is OpenAI's chat completions. Reasoning is reasoning_content, as with
// DeepSeek, SGLang and vLLM.
var chatAPI = api{
	name: "chat", path: "/v1/chat/completions",
	idPrefix:    "chatcmpl-",
	promptParam: "messages",
	maxTokens:   math.MaxInt,

	readPrompt:     readChat,
	readParameters: choiceParameters,

	encoder: &choices{
		object:        "chat.completion",
		chunkObject:   "chat.completion.chunk",
		wholeOpening:  `{"index":0,"message":{"role":"assistant","content":"`,
		wholeThinking: `{"index":0,"message":{"role":"assistant","reasoning_content":"`,
		thinkingEnd:   `","content":"`,
		role:          `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`,
		opening:       `{"index":0,"delta":{"content":"`,
		thinkOpening:  `{"index":0,"delta":{"reasoning_content":"`,
		closing:       `"},"logprobs":null,"finish_reason":`,
	},
	errorBody:          openAIError,
	separatesReasoning: true,
}

// readChat adds the contents of all messages to the prompt.
func readChat(w *wireRequest, p tokens) *apiError {
	return w.readMessages("messages", messageForm{textParts: []string{"text"}, reasoning: true}, p)
}

// completionAPI is OpenAI's completions. Reasoning is part of the text.
var completionAPI = api{
	name: "completions", path: "/v1/completions",
	idPrefix:    "cmpl-",
	promptParam: "prompt",
	maxTokens:   16, // as in OpenAI and vLLM

	tokenIDs:       "prompt",
	readPrompt:     readCompletion,
	readParameters: choiceParameters,

	encoder: &choices{
		object:       "text_completion",
		chunkObject:  "text_completion",
		wholeOpening: `{"index":0,"text":"`,
		opening:      `{"index":0,"text":"`,
		closing:      `","logprobs":null,"finish_reason":`,
	},
	errorBody: openAIError,
}

// readCompletion adds the prompt of a completion: a text, an array of token
// ids, or an array containing one of these.
func readCompletion(w *wireRequest, p tokens) *apiError {
	m := w.get("prompt")
	if m.absent() {
		return m.missing()
	}
	c := jsonscan.New(m.value)
	if m.isArray() && c.Open('[') && (c.Peek() == '"' || c.Peek() == '[') {
		inner := raw(c.Raw())
		if c.More(']') {
			return badRequest(m.name, "only one prompt per request is supported")
		}
		m.value = inner
	}
	if m.isArray() {
		return m.readTokenIDs(p)
	}
	return m.readText(p)
}
