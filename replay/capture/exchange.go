package capture

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/openai/http1"
	"moontide/trace/record"
)

// exchange is a request and its answer. Its two halves end in any order; the one that
// ends last records it.
type exchange struct {
	proxy       *Proxy
	endpoint    string
	arrived     time.Time
	sessionName string // from the header
	halves      atomic.Int32

	// The request, until it is hashed.
	mu         sync.Mutex // of bodyDone and body: a transport may read it for longer than its exchange
	body       buffer
	bodyDone   bool
	bodyCoding string
	call       *record.Call
	blocks     *record.Blocks
	noBlocks   gap // why there are none
	turn       *record.Turn
	sampledOut bool

	// The answer.
	status   int
	streamed bool
	observer *openai.Observer
	held     int // bytes of the observer that count as memory
	whole    buffer
	inflater *http1.Inflater
	opaque   bool // the answer's coding is not read
	readErr  error
	seen     openai.Observed
	ended    time.Time // the last byte
	class    replay.Class
	over     bool // the answer has ended; guarded by Proxy.mu
}

// requestBody passes the body of a request on. It keeps a copy for an exchange.
type requestBody struct {
	io.ReadCloser
	of    *exchange     // nil if the request is not recorded
	over  chan struct{} // closed at the end of the exchange
	ended bool          // it was read to its end
}

// Read implements io.Reader. When an answer begins, the server closes the body, and a
// transport that reads it once more, if only for the end, would take the failure for
// one of the exchange and end the answer: it has to wait.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	b.ended = err == io.EOF
	if e := b.of; e != nil {
		e.copyBody(p[:n], b.ended)
	}
	if err == http.ErrBodyReadAfterClose {
		<-b.over
	}
	return n, err
}

// copyBody keeps a piece of the body, and ends it after the last one.
func (e *exchange) copyBody(piece []byte, last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bodyDone {
		return
	}
	e.body.write(piece)
	if last {
		e.endBody("")
	}
}

// endBody ends the first half of an exchange. e.mu must be held.
func (e *exchange) endBody(why gap) {
	if e.bodyDone {
		return
	}
	e.bodyDone = true
	if why != "" {
		e.body.drop(why)
	}
	if e.body.dropped != "" {
		e.noBlocks = e.body.dropped
	}
	e.proxy.hash(e)
}

// answerBody passes the body of an answer on and observes it.
type answerBody struct {
	io.ReadCloser
	of *exchange
}

func (b answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if e := b.of; n > 0 || err != nil {
		e.ended = time.Now()
		if !e.proxy.guard(func() { e.observe(p[:n], err) }) {
			e.opaque = true
		}
	}
	return n, err
}

// guard calls f, whose panic must not harm the traffic.
func (p *Proxy) guard(f func()) (ok bool) {
	defer func() {
		if !ok {
			recover()
			p.counts.faults.Add(1)
		}
	}()
	f()
	return true
}

// begin takes the head of an answer.
func (e *exchange) begin(r *http.Response) {
	e.status = r.StatusCode
	e.streamed = strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "text/event-stream")
	switch coding := r.Header.Get("Content-Encoding"); {
	case coding == "" || strings.EqualFold(coding, "identity"):
	case strings.EqualFold(coding, "gzip"):
		e.inflater = http1.NewInflater()
	default:
		e.opaque = true
	}
	e.whole = buffer{memory: &e.proxy.memory, most: e.proxy.cfg.MaxBody}
	e.observer = openai.Observe(e.endpoint, e.proxy.cfg.Encoder != nil)
}

// observe takes a piece of the answer and the error of reading it.
func (e *exchange) observe(piece []byte, err error) {
	if err != nil {
		e.readErr = err
	}
	switch {
	case e.opaque || e.status != http.StatusOK:
	case e.inflater == nil:
		e.decoded(piece)
	default:
		e.inflate(piece, err == io.EOF)
	}
}

func (e *exchange) inflate(piece []byte, last bool) {
	e.inflater.Feed(piece)
	if last {
		e.inflater.End()
	}
	for {
		decoded, err := e.inflater.Next()
		if err != nil && err != io.EOF {
			e.opaque = true
		}
		if err != nil || decoded == nil {
			return
		}
		e.decoded(decoded)
	}
}

func (e *exchange) decoded(piece []byte) {
	if !e.streamed {
		e.whole.write(piece)
		return
	}
	e.observer.Stream(piece, e.ended)
	if grown := e.observer.Held() - e.held; grown > 0 {
		if e.proxy.memory.take(grown) {
			e.held += grown
		} else {
			e.observer.Forget()
		}
	}
}

// end ends the second half of an exchange. gone is whether the client left.
func (e *exchange) end(gone bool) {
	if e.ended.IsZero() {
		e.ended = time.Now()
	}
	e.mu.Lock()
	e.endBody(incomplete)
	e.mu.Unlock()
	if !e.proxy.guard(e.conclude) {
		e.opaque = true
	}
	switch {
	case gone && e.readErr != io.EOF:
		e.class = replay.Abandoned
	case e.status == 0:
		e.class = replay.Connect
	case e.status != http.StatusOK:
		e.class = replay.HTTPError
	case e.opaque && e.readErr == io.EOF:
		e.class = replay.OK
	case e.opaque:
		e.class = replay.Truncated
	default:
		e.class = e.seen.Class
	}
	e.proxy.answered(e)
}

// conclude closes what observed the answer, and releases what it held.
func (e *exchange) conclude() {
	if e.inflater != nil {
		e.inflater.Close()
	}
	if e.observer != nil {
		if !e.streamed && e.status == http.StatusOK && e.whole.dropped == "" {
			e.observer.Whole(e.whole.bytes)
		}
		e.seen = e.observer.End(e.readErr)
	}
	if e.whole.memory != nil {
		e.whole.drop("")
	}
	e.observer = nil
}
