package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay/weblog"
	"moontide/trace/jsonscan"
)

const (
	maxBody  = 64 << 20         // bytes
	bodyTime = 10 * time.Minute // until a body has arrived
	// maxKeptBody is the maximum size in bytes of a body whose memory is kept for
	// the next request. The prompts of 10,000 streams would take gigabytes.
	maxKeptBody = 16 << 10
)

const jsonType = "application/json"

// Headers of requests.
const (
	sessionHeader = "X-Session-ID"      // session id for routing
	stampsHeader  = "X-Moontide-Stamps" // "1": each event has the instant of its writing
	faultHeader   = "X-Moontide-Fault"  // a fault, instead of the configured ones
)

// pages are what is served besides the APIs.
var pages = map[string]func(*Server, *fasthttp.RequestCtx){
	"/health":  func(*Server, *fasthttp.RequestCtx) {},
	"/metrics": (*Server).serveMetrics,
	"/version": func(s *Server, ctx *fasthttp.RequestCtx) {
		respond(ctx, jsonType, fmt.Appendf(nil, `{"version":%s}`, jsonscan.AppendString(nil, s.cfg.Version)))
	},
	"/v1/models": func(s *Server, ctx *fasthttp.RequestCtx) {
		respond(ctx, jsonType, fmt.Appendf(nil, `{"object":"list","data":[{"id":%[1]s,"object":"model","created":%[2]d,"owned_by":"moontide","root":%[1]s,"parent":null,"max_model_len":%[3]d}]}`,
			s.model, s.start.Unix(), s.cfg.Deployment.Engine.MaxModelLen))
	},
}

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	defer func() { // the value may have text of the request
		if recover() != nil {
			weblog.Logger.Print(weblog.HandlerPanic)
			ctx.SetConnectionClose()
			serverError().write(ctx)
		}
	}()
	page, api, takes := pages[path], apiAt(path), fasthttp.MethodGet
	if api != nil {
		takes = fasthttp.MethodPost
	}
	switch method := string(ctx.Method()); {
	case page == nil && api == nil:
		newError(fasthttp.StatusNotFound, "%.64q is not served", path).write(ctx)
	case method != takes:
		ctx.Response.Header.Set(fasthttp.HeaderAllow, takes)
		newError(fasthttp.StatusMethodNotAllowed, "%s takes %s, not %.64q", path, takes, method).write(ctx)
	case api == nil:
		page(s, ctx)
	default:
		if err := s.serveResponse(ctx, api); err != nil {
			err.write(ctx)
		}
	}
}

// write responds to a request with the error, as the API of the path has it, or OpenAI's.
func (e *apiError) write(ctx *fasthttp.RequestCtx) {
	api := cmp.Or(apiAt(string(ctx.Path())), &chatAPI)
	ctx.SetStatusCode(e.status)
	respond(ctx, jsonType, api.failure.append(nil, &response{api: api, failure: e}))
}

// respond sets the body of a response.
func respond(ctx *fasthttp.RequestCtx, contentType string, body []byte) {
	ctx.SetContentType(contentType)
	ctx.SetBody(body)
}

func (s *Server) serveResponse(ctx *fasthttp.RequestCtx, api *api) *apiError {
	r, err := s.cfg.parse(ctx.PostBody(), api)
	ctx.Request.ReleaseBody(maxKeptBody)
	if err != nil {
		return err
	}
	r.session = string(ctx.Request.Header.Peek(sessionHeader))
	number := s.lastID.Add(1)
	random := faultRandom(s.cfg.Seed, number)
	fault, err := s.faultOf(ctx, random)
	if err != nil {
		return err
	}
	q := s.newActive(r, response{
		api: api, id: fmt.Sprintf("%016x%016x", s.idSeed, number), created: ctx.Time().Unix(), model: s.model,
		options: r.options, stamped: string(ctx.Request.Header.Peek(stampsHeader)) == "1",
	}, ctx.Conn().(*conn), ctx.Time())
	if err := s.tooLong(q); err != nil {
		return err
	}
	if err := s.faultBefore(ctx, fault); err != nil {
		return err
	}
	switch {
	case r.stream:
		if fault.inStream() {
			before := min(1+random.IntN(max(q.Output-1, 1)), q.Output-1)
			q.fault = &pendingFault{fault, before, make(chan struct{})}
		}
		q.streamed = true
		ctx.SetContentType("text/event-stream; charset=utf-8")
		ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-cache")
		ctx.Response.ImmediateHeaderFlush = true
		ctx.Response.SetBodyStream(q, -1)
		return nil
	case fault.inStream():
		return serverError()
	}
	if err := s.run(q); err != nil {
		ctx.SetConnectionClose()
		return unserved(err)
	}
	q.promptTokens, q.cachedTokens, q.upTo = q.Prompt.Len(), q.Cached(), q.tokens
	respond(ctx, jsonType, q.api.whole.append(nil, &q.response))
	return nil
}

func serverError() *apiError {
	return newError(fasthttp.StatusInternalServerError, "The server had an error while processing your request.")
}

// unserved returns the response to an error of run, which a client that is gone does not
// read.
func unserved(err error) *apiError {
	if err == errShutdown {
		return newError(fasthttp.StatusServiceUnavailable, "the server is shutting down")
	}
	return newError(499, "the client closed the connection")
}

// refuseBroken refuses input that fasthttp cannot parse as a request, and then
// closes the connection.
func refuseBroken(ctx *fasthttp.RequestCtx, err error) {
	e := newError(fasthttp.StatusBadRequest, "the HTTP request cannot be read")
	var timeout net.Error
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		e.status, e.message = fasthttp.StatusRequestEntityTooLarge, "the body is too large"
	case errors.As(err, &small):
		e.status, e.message = fasthttp.StatusRequestHeaderFieldsTooLarge, "the headers are too large"
	case errors.As(err, &timeout) && timeout.Timeout():
		e.status, e.message = fasthttp.StatusRequestTimeout, "the request took too long to arrive"
	}
	e.write(ctx)
}

// apiError is an error response of the API.
type apiError struct {
	status  int
	message string
	param   string // invalid parameter; may be ""
	code    string // for programs; may be ""
}

func newError(status int, format string, args ...any) *apiError {
	return &apiError{status, fmt.Sprintf(format, args...), "", ""}
}

func badRequest(param, format string, args ...any) *apiError {
	return &apiError{fasthttp.StatusBadRequest, fmt.Sprintf(format, args...), param, ""}
}

// notSupported rejects a parameter that would change the response in a way that
// is not modelled.
func notSupported(param string) *apiError {
	return &apiError{fasthttp.StatusBadRequest, "this value of " + param + " is not supported by the simulated server", param, "unsupported_value"}
}

// contextLength rejects a request that is too long, with vLLM's message.
func contextLength(limit, prompt, output int, api *api) *apiError {
	return &apiError{fasthttp.StatusBadRequest, fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens "+
		"(%d in the %s, %d in the completion). Please reduce the length of the %[4]s or completion.",
		limit, uint64(prompt)+uint64(output), prompt, api.promptParam, output), api.promptParam, "context_length_exceeded"}
}
