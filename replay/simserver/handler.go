package simserver

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// maxKeptBody is the largest body, in bytes, whose memory stays for the next
// request of its connection. The prompts of 10,000 streams would be gigabytes.
const maxKeptBody = 16 << 10

const jsonType = "application/json"

// route is what is served at a path; a path without one serves nothing.
type route struct {
	method string
	serve  func(*Server, *fasthttp.RequestCtx) *apiError
}

func routeTo(path string) route {
	switch path {
	case "/v1/chat/completions":
		return route{fasthttp.MethodPost, func(s *Server, ctx *fasthttp.RequestCtx) *apiError {
			return s.serveAnswer(ctx, &chatAPI)
		}}
	case "/v1/completions":
		return route{fasthttp.MethodPost, func(s *Server, ctx *fasthttp.RequestCtx) *apiError {
			return s.serveAnswer(ctx, &completionAPI)
		}}
	case "/v1/models":
		return route{fasthttp.MethodGet, (*Server).serveModels}
	case "/metrics":
		return route{fasthttp.MethodGet, (*Server).serveMetrics}
	case "/health":
		return route{fasthttp.MethodGet, func(*Server, *fasthttp.RequestCtx) *apiError { return nil }}
	}
	return route{}
}

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	path, method := string(ctx.Path()), string(ctx.Method())
	r := routeTo(path)
	var err *apiError
	switch {
	case r.serve == nil:
		err = &apiError{status: fasthttp.StatusNotFound, message: fmt.Sprintf("there is nothing at %q", shortened(path))}
	case method != r.method:
		ctx.Response.Header.Set(fasthttp.HeaderAllow, r.method)
		err = &apiError{
			status:  fasthttp.StatusMethodNotAllowed,
			message: fmt.Sprintf("%s takes %s, not %q", path, r.method, shortened(method)),
		}
	default:
		err = r.serve(s, ctx)
	}
	if err != nil {
		err.write(ctx)
	}
}

func (s *Server) serveModels(ctx *fasthttp.RequestCtx) *apiError {
	ctx.SetContentType(jsonType)
	ctx.SetBody(fmt.Appendf(nil,
		`{"object":"list","data":[{"id":%s,"object":"model","created":%d,"owned_by":"moontide","root":%s,"parent":null,"max_model_len":%d}]}`,
		s.model, s.start.Unix(), s.model, s.cfg.MaxModelLen))
	return nil
}

func (s *Server) serveAnswer(ctx *fasthttp.RequestCtx, api *api) *apiError {
	r, err := s.cfg.parse(ctx.PostBody(), api)
	ctx.Request.ReleaseBody(maxKeptBody)
	if err != nil {
		return err
	}
	a := &answer{
		api:          api,
		timeline:     s.submit(r),
		seed:         r.prompt.hash(),
		id:           fmt.Sprintf("%s%016x%016x", api.idPrefix, s.idSeed, s.lastID.Add(1)),
		created:      time.Now().Unix(),
		model:        s.model,
		includeUsage: r.includeUsage,
	}
	if r.stream {
		s.serveStream(ctx, a)
		return nil
	}
	return s.serveWhole(ctx, a)
}

func (s *Server) serveStream(ctx *fasthttp.RequestCtx, a *answer) {
	a.startStream()
	ctx.SetContentType("text/event-stream; charset=utf-8")
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-cache")
	// A stream writer of the library stands behind a pipe that joins what is
	// flushed apart; a reader does not.
	ctx.Response.ImmediateHeaderFlush = true
	ctx.Response.SetBodyStream(&eventStream{server: s, answer: a, timer: newStoppedTimer()}, -1)
}

func (s *Server) serveWhole(ctx *fasthttp.RequestCtx, a *answer) *apiError {
	defer s.release(a.timeline)
	timer := newStoppedTimer()
	if err := s.waitUntil(timer, a.timeline.Due(a.timeline.Tokens-1)); err != nil {
		return &apiError{status: fasthttp.StatusServiceUnavailable, message: "the server is shutting down"}
	}
	ctx.SetContentType(jsonType)
	ctx.SetBody(a.whole())
	return nil
}

// refuseBroken answers what is not a request that the handler could be given.
// The connection is closed afterwards.
func refuseBroken(ctx *fasthttp.RequestCtx, err error) {
	e := &apiError{status: fasthttp.StatusBadRequest, message: "the HTTP request cannot be read"}
	var timeout net.Error
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		e.status, e.message = fasthttp.StatusRequestEntityTooLarge, "the body is too large"
		drain(ctx.Conn())
	case errors.As(err, &small):
		e.status, e.message = fasthttp.StatusRequestHeaderFieldsTooLarge, "the headers are too large"
	case errors.As(err, &timeout) && timeout.Timeout():
		e.status, e.message = fasthttp.StatusRequestTimeout, "the request took too long to arrive"
	}
	e.write(ctx)
}

// drain reads what a client goes on sending, until it pauses and for no more
// than a few seconds. A connection that is closed with data unread is reset,
// and its client may never see why.
func drain(conn net.Conn) {
	const pause, most = 50 * time.Millisecond, 5 * time.Second
	end := time.Now().Add(most)
	buf := make([]byte, 64<<10)
	for time.Now().Before(end) {
		if err := conn.SetReadDeadline(time.Now().Add(pause)); err != nil {
			return
		}
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}
