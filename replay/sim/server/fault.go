package server

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// Fault is an error simulated in a share of the responses.
type Fault struct {
	Kind  string
	Share float64 // of requests: above 0, up to 1
	// Time is the length of a delay or stall (0: forever), or the value of Retry-After.
	Time time.Duration
}

// Kinds of faults. Those within a stream, from Stall on, happen before a random token
// after the first; a response that is not streamed gets status 500 instead.
const (
	TooMany  = "429"      // status 429 with Retry-After
	Failure  = "500"      // status 500
	Delay    = "delay"    // the request is accepted late
	Stall    = "stall"    // the stream pauses
	Reset    = "reset"    // the connection is reset
	Truncate = "truncate" // the connection is closed in the middle of the stream
	Broken   = "error"    // the stream ends with an error event
	Garbage  = "garbage"  // a malformed event is inserted
)

// FaultKinds lists the kinds of faults.
var FaultKinds = []string{TooMany, Failure, Delay, Stall, Reset, Truncate, Broken, Garbage}

// ParseFault parses KIND[:SHARE[:TIME]], such as "reset:0.01" or "stall:1:2s": the
// share of requests (above 0, up to 1; default 1), and the time of a delay or a 429
// (default 1s) or of a stall.
func ParseFault(text string) (f Fault, err error) {
	parts := strings.SplitN(text, ":", 3)
	f = Fault{Kind: strings.ToLower(parts[0]), Share: 1}
	if !slices.Contains(FaultKinds, f.Kind) {
		return f, fmt.Errorf("fault %.64q is not one of %s", parts[0], strings.Join(FaultKinds, ", "))
	}
	if f.Kind == TooMany || f.Kind == Delay {
		f.Time = time.Second
	}
	if len(parts) > 1 {
		if f.Share, err = strconv.ParseFloat(parts[1], 64); err != nil || !(f.Share > 0 && f.Share <= 1) {
			return f, fmt.Errorf("fault %s: share of requests must be above 0 and at most 1, got %.64q", f.Kind, parts[1])
		}
	}
	if len(parts) > 2 {
		const longest = time.Hour
		if f.Time == 0 && f.Kind != Stall {
			return f, fmt.Errorf("fault %s takes no time: %.64q", f.Kind, parts[2])
		}
		if f.Time, err = time.ParseDuration(parts[2]); err != nil || f.Time <= 0 || f.Time > longest {
			return f, fmt.Errorf("fault %s: time must be above 0 and at most %v, got %.64q", f.Kind, longest, parts[2])
		}
	}
	return f, nil
}

// faultRandom returns the random source for the faults of the n-th request. It
// is independent of other requests.
func faultRandom(seed, n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed^0x6661756c74, n)) // separate from other uses of the seed
}

// drawFault returns the first fault drawn by r, or none.
func drawFault(faults []Fault, r *rand.Rand) Fault {
	for _, f := range faults {
		if r.Float64() < f.Share {
			return f
		}
	}
	return Fault{}
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

// faultBefore simulates faults that happen before a response.
func (s *Server) faultBefore(ctx *fasthttp.RequestCtx, f Fault) *apiError {
	switch f.Kind {
	case TooMany:
		seconds := int(math.Ceil(f.Time.Seconds()))
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(seconds))
		return &apiError{fasthttp.StatusTooManyRequests, fmt.Sprintf("Rate limit reached. Please try again in %ds.", seconds), "", "rate_limit_exceeded"}
	case Failure:
		return serverError()
	case Delay:
		select {
		case <-time.After(f.Time):
		case <-s.done:
			return unserved(errShutdown)
		}
	}
	return nil
}

// inStream reports whether the fault happens within a stream.
func (f Fault) inStream() bool {
	return slices.Index(FaultKinds, f.Kind) >= slices.Index(FaultKinds, Stall)
}

// garbage is an event that is neither JSON nor text.
const garbage = "data: {\"choices\":[{\"index\":0,\"te\xff\xfe\x00]]\n\n"

// pendingFault is a fault of a stream that has not happened yet.
type pendingFault struct {
	Fault
	before int           // the token
	gone   chan struct{} // closed when the response is abandoned
}

// strike triggers the fault of a stream. It returns what is written in its place, and
// whether the stream goes on after that.
func (q *activeRequest) strike(f *pendingFault) (instead []byte, goesOn bool) {
	switch f.Kind {
	case Reset:
		q.conn.reset()
		return nil, false
	case Truncate:
		q.conn.Close()
		return nil, false
	case Broken:
		q.failure, q.stamp = serverError(), q.server.stamp()
		return chunkOf(q.api.failed.append(nil, &q.response), true), false
	case Garbage:
		return chunkOf([]byte(garbage), false), true
	}
	select {
	case <-time.After(cmp.Or(f.Time, 24*time.Hour)):
	case <-f.gone:
	}
	return nil, true
}
