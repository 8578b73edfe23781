package server

import (
	"fmt"

	"github.com/valyala/fasthttp"
)

// api is an API that clients speak: how its requests are read and its answers
// written. Chat and completions share choices.go, each of the others has a file.
type api struct {
	name, path  string
	promptParam string // names the prompt in errors
	prompt      []promptPart
	tokenIDs    string // member that may be a long array of token ids; "" if there is none

	// Names of the members that mean the same in every API: see body.
	objects          []string // members that hold further ones
	limits           []string // of an answer's length; a later one takes precedence
	least, ignoreEOS string
	limited          bool // a limit must be given
	maxTokens        int  // the default limit

	separatesReasoning bool // answers tell reasoning from visible text
	forms
}

// forms are how an API writes its answers. Those of a stream are of events.
type forms struct {
	accepted        form // before the answer is begun
	begun           form // before the first token
	text, reasoning partForms
	usageEvent      form // after the last token, if stream_options ask for it
	ended           form // after that
	failed          form // an error, which ends the stream

	whole                 form // an answer that is not streamed
	usage                 form
	running, stop, length form           // why the answer ended, or that it has not
	failure               form           // an error
	kinds                 map[int]string // of errors by status; the default is invalid_request_error
}

// partForms are the forms of a part of an answer.
type partForms struct {
	opened, token, closed form // before the first token, of each, and after the last one
	whole                 form
}

// apis lists the APIs that are served.
var apis = []*api{&chatAPI, &completionAPI, &responsesAPI, &messagesAPI, &generateAPI}

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

// write answers a request with the error, as the API has it.
func (e *apiError) write(ctx *fasthttp.RequestCtx, api *api) {
	ctx.SetStatusCode(e.status)
	respond(ctx, jsonType, api.failure.append(nil, &answer{api: api, failure: e}))
}
