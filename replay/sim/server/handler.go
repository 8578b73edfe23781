package server

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay/weblog"
	"moontide/trace/jsonscan"
)

// maxBody is the maximum size of a request's body in bytes.
const maxBody = 64 << 20

// maxKeptBody is the maximum size in bytes of a body whose memory is kept for
// the next request. The prompts of 10,000 streams would take gigabytes.
const maxKeptBody = 16 << 10

// bodyTime is how long a body may take to arrive.
const bodyTime = 10 * time.Minute

const jsonType = "application/json"

// Headers of requests.
const (
	sessionHeader = "X-Session-ID"      // session id for routing
	stampsHeader  = "X-Moontide-Stamps" // "1": each event has the instant of its writing
	faultHeader   = "X-Moontide-Fault"  // a fault, instead of the configured ones
)

// route describes the handler of a path.
type route struct {
	method string
	serve  func(*Server, *fasthttp.RequestCtx) *apiError
	api    *api // whose errors it has; nil: OpenAI's
}

// routes maps paths to routes.
var routes = func() map[string]route {
	routes := map[string]route{
		"/v1/models": {fasthttp.MethodGet, (*Server).serveModels, nil},
		"/metrics":   {fasthttp.MethodGet, (*Server).serveMetrics, nil},
		"/version":   {fasthttp.MethodGet, (*Server).serveVersion, nil},
		"/health":    {fasthttp.MethodGet, func(*Server, *fasthttp.RequestCtx) *apiError { return nil }, nil},
	}
	for _, api := range apis {
		serve := func(s *Server, ctx *fasthttp.RequestCtx) *apiError { return s.serveAnswer(ctx, api) }
		routes[api.path] = route{fasthttp.MethodPost, serve, api}
	}
	return routes
}()

// errorAPI returns the API whose errors a path has.
func errorAPI(path string) *api { return cmp.Or(routes[path].api, &chatAPI) }

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	path, method := string(ctx.Path()), string(ctx.Method())
	defer func() { // the value may have text of the request
		if recover() != nil {
			weblog.Logger.Print(weblog.HandlerPanic)
			ctx.SetConnectionClose()
			serverError().write(ctx, errorAPI(path))
		}
	}()
	r, ok := routes[path]
	var err *apiError
	switch {
	case !ok:
		err = newError(fasthttp.StatusNotFound, "%q is not served", shortened(path))
	case method != r.method:
		ctx.Response.Header.Set(fasthttp.HeaderAllow, r.method)
		err = newError(fasthttp.StatusMethodNotAllowed, "%s takes %s, not %q", path, r.method, shortened(method))
	default:
		err = r.serve(s, ctx)
	}
	if err != nil {
		err.write(ctx, errorAPI(path))
	}
}

// respond sets the body of a response. It returns nil.
func respond(ctx *fasthttp.RequestCtx, contentType string, body []byte) *apiError {
	ctx.SetContentType(contentType)
	ctx.SetBody(body)
	return nil
}

func (s *Server) serveModels(ctx *fasthttp.RequestCtx) *apiError {
	return respond(ctx, jsonType, fmt.Appendf(nil, `{"object":"list","data":[{"id":%s,"object":"model","created":%d,"owned_by":"moontide","root":%s,"parent":null,"max_model_len":%d}]}`,
		s.model, s.start.Unix(), s.model, s.cfg.Deployment.Engine.MaxModelLen))
}

func (s *Server) serveVersion(ctx *fasthttp.RequestCtx) *apiError {
	return respond(ctx, jsonType, fmt.Appendf(nil, `{"version":%s}`, jsonscan.AppendString(nil, s.cfg.Version)))
}

func (s *Server) serveAnswer(ctx *fasthttp.RequestCtx, api *api) *apiError {
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
	q := s.newActive(r, answer{
		api:     api,
		id:      fmt.Sprintf("%016x%016x", s.idSeed, number),
		created: ctx.Time().Unix(),
		model:   s.model,
		options: r.options,
		stamped: string(ctx.Request.Header.Peek(stampsHeader)) == "1",
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
			q.writer.fault = &pendingFault{fault, before, make(chan struct{})}
		}
		s.serveStream(ctx, q)
		return nil
	case fault.inStream():
		return serverError()
	}
	if err := s.run(q); err != nil {
		ctx.SetConnectionClose()
		return notAnswered(err)
	}
	q.usage, q.upTo = usage{q.Prompt.Len(), q.Cached()}, q.tokens
	return respond(ctx, jsonType, q.api.whole.append(nil, &q.answer))
}

// faultOf returns the fault of a request, if any.
func (s *Server) faultOf(ctx *fasthttp.RequestCtx, random *rand.Rand) (Fault, *apiError) {
	text := ctx.Request.Header.Peek(faultHeader)
	if len(text) == 0 {
		return drawFault(s.cfg.Faults, random), nil
	}
	f, err := ParseFault(string(text))
	if err != nil {
		return Fault{}, badRequest(faultHeader, "%v", err)
	}
	return drawFault([]Fault{f}, random), nil
}

// faultBefore simulates faults that happen before an answer.
func (s *Server) faultBefore(ctx *fasthttp.RequestCtx, f Fault) *apiError {
	switch f.Kind {
	case TooMany:
		seconds := int(math.Ceil(f.Time.Seconds()))
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(seconds))
		err := newError(fasthttp.StatusTooManyRequests, "Rate limit reached. Please try again in %ds.", seconds)
		err.code = "rate_limit_exceeded"
		return err
	case Failure:
		return serverError()
	case Delay:
		return notAnswered(s.pause(f.Time))
	}
	return nil
}

func serverError() *apiError {
	return newError(fasthttp.StatusInternalServerError, "The server had an error while processing your request.")
}

// clientGone is a response that is never read.
var clientGone = newError(499, "the client closed the connection")

// notAnswered returns the response to an error of run or pause.
func notAnswered(err error) *apiError {
	switch err {
	case nil:
		return nil
	case errShutdown:
		return newError(fasthttp.StatusServiceUnavailable, "the server is shutting down")
	}
	return clientGone
}

func (s *Server) serveStream(ctx *fasthttp.RequestCtx, q *activeRequest) {
	q.streamed = true
	ctx.SetContentType("text/event-stream; charset=utf-8")
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-cache")
	ctx.Response.ImmediateHeaderFlush = true
	ctx.Response.SetBodyStream(eventStream{s, q}, -1)
}

// refuseBroken answers input that fasthttp cannot parse as a request, and then
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
	e.write(ctx, errorAPI(string(ctx.Path())))
}
