package server

import (
	"fmt"

	"github.com/bytedance/sonic"
	"github.com/valyala/fasthttp"
)

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
