package server

import (
	"fmt"

	"github.com/bytedance/sonic"
	"github.com/valyala/fasthttp"
)

// api is an API that clients speak: how its requests are read and its answers
// written. Chat and completions share choices.go, each of the others has a file.
type api struct {
	name, path  string
	idPrefix    string
	promptParam string // names the prompt in errors
	maxTokens   int    // default

	tokenIDs       string // member that may be a long array of token ids; "" if there is none
	readPrompt     func(*wireRequest, tokens) *apiError
	readParameters func(*wireRequest) (parameters, *apiError)

	encoder
	errorBody func(*apiError) any // to be encoded as JSON
	// separatesReasoning is whether answers tell reasoning from visible text.
	separatesReasoning bool
}

// apis lists the APIs that are served.
var apis = []*api{&chatAPI, &completionAPI, &responsesAPI, &messagesAPI, &generateAPI}

// encoder encodes the answers of an API as JSON. It does so without a library
// because events must be very cheap, and all strings are quoted already or need no
// escaping. The events of an answer are encoded once each, in order.
type encoder interface {
	// begin prepares the stream of an answer. It is called once, before the
	// methods that append events.
	begin(a *answer)
	// appendAccepted appends the events that are sent before the first token.
	appendAccepted(b []byte, a *answer, stamp int64) []byte
	// appendToken appends the events of token k, and those that the first token
	// of reasoning or of visible text brings along.
	appendToken(b []byte, a *answer, k int, u usage, stamp int64) []byte
	// appendEnd appends the end of the stream, after the last token.
	appendEnd(b []byte, a *answer, u usage, stamp int64) []byte
	// appendError appends an error and the end of the stream.
	appendError(b []byte, a *answer, e *apiError, stamp int64) []byte
	// appendWhole appends an answer that is not streamed.
	appendWhole(b []byte, a *answer, u usage) []byte
}

// parameters are the members of a request that mean the same in every API,
// whatever each of them calls them.
type parameters struct {
	maxTokens            []parameter // a later one takes precedence
	minTokens, ignoreEOS parameter
	streamOptions        parameter
}

// openParameters returns the parameters under the names of vLLM, which accepts
// most of them in every API.
func (w *wireRequest) openParameters() parameters {
	return parameters{minTokens: w.get("min_tokens"), ignoreEOS: w.get("ignore_eos")}
}

// apiError is an error response of the API.
type apiError struct {
	status  int
	message string
	param   string // invalid parameter; may be ""
	code    string // for programs; may be ""
}

func newError(status int, format string, args ...any) *apiError {
	return &apiError{status: status, message: fmt.Sprintf(format, args...)}
}

func badRequest(param, format string, args ...any) *apiError {
	e := newError(fasthttp.StatusBadRequest, format, args...)
	e.param = param
	return e
}

// notSupported rejects a parameter that would change the answer in a way that
// is not modelled.
func notSupported(param string) *apiError {
	e := badRequest(param, "this value of %s is not supported by the simulated server", param)
	e.code = "unsupported_value"
	return e
}

// contextLength rejects a request that is too long, with vLLM's message.
func contextLength(limit, prompt, answer int, api *api) *apiError {
	e := badRequest(api.promptParam, "This model's maximum context length is %d tokens. However, you requested %d tokens "+
		"(%d in the %s, %d in the completion). Please reduce the length of the %s or completion.",
		limit, uint64(prompt)+uint64(answer), prompt, api.promptParam, answer, api.promptParam)
	e.code = "context_length_exceeded"
	return e
}

// encode returns the error as JSON, as the API has it.
func (e *apiError) encode(api *api) []byte {
	body, err := sonic.ConfigStd.Marshal(api.errorBody(e))
	if err != nil { // impossible: strings only
		body = []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}`)
	}
	return body
}

func (e *apiError) write(ctx *fasthttp.RequestCtx, api *api) {
	ctx.SetStatusCode(e.status)
	respond(ctx, jsonType, e.encode(api))
}

// quoted returns s as a JSON string.
func quoted(s string) []byte {
	text, err := sonic.ConfigStd.Marshal(s)
	if err != nil { // impossible for a string
		return []byte(`""`)
	}
	return text
}
