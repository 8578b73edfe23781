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
	"moontide/trace/log"
)

// exchange is a request and its response: two halves that end in any order. The one that
// ends last records it, if it is of an API.
type exchange struct {
	proxy       *Proxy
	client      client
	interim     atomic.Int64  // bytes of interim responses
	upgraded    bool          // the connection is no longer the server's
	returned    chan struct{} // closed when ServeHTTP returns
	endpoint    string        // "" if it is not recorded
	arrived     time.Time
	sessionName string // from the header
	openHalves  atomic.Int32

	// The request, until it is hashed.
	mu         sync.Mutex // guards the next four: a transport may read a body after the exchange
	body       buffer
	bodyDone   bool
	forwarded  bool // the beginning of the response, or there is none
	hashing    sync.Once
	bodyCoding string
	call       *log.Call
	blocks     *log.Blocks
	noBlocks   gap // why there are none
	turn       *log.Turn
	sampledOut bool

	// The response.
	status       int
	streamed     bool
	observer     *openai.Observer
	textBytes    int // bytes of the observer's text taken from the memory limit
	whole        buffer
	inflater     *http1.Inflater
	opaque       bool // the response cannot be read
	readErr      error
	observed     openai.Observed
	ended        time.Time // when the last byte arrived
	clientLeft   bool
	class        replay.Class
	responseOver bool // the response has ended; guarded by Proxy.mu
}

// requestBody is the body of a request. It keeps a copy of what is read in the exchange.
type requestBody struct {
	io.ReadCloser
	exchange *exchange
	ended    bool
}

// Read implements io.Reader. When a response begins, net/http closes the body. A transport
// that then reads it would take the failure for one of the exchange and end the response, so
// Read waits for the end of the exchange. (With EnableFullDuplex the body stays open, but
// net/http panics if a later request comes before the end.)
func (b *requestBody) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	e := b.exchange
	e.client.sends()
	n, err := b.ReadCloser.Read(p)
	e.client.sent += n
	if b.ended = err == io.EOF; b.ended {
		e.client.conn.SetReadDeadline(time.Time{}) // a response may take any time
	}
	e.copyBody(p[:n], b.ended)
	if err == http.ErrBodyReadAfterClose {
		<-e.returned
	}
	return n, err
}

func (e *exchange) copyBody(piece []byte, last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bodyDone {
		return
	}
	e.body.write(piece)
	if last {
		e.endBody()
	}
}

// endBody hashes the body once the beginning of the response is forwarded: the traffic comes
// first. If memory is short, it does not wait. e.mu must be held.
func (e *exchange) endBody() {
	e.bodyDone = true
	if e.body.dropped != "" {
		e.noBlocks = e.body.dropped
	}
	if e.forwarded || e.proxy.memory.crowded() {
		e.hashing.Do(e.hash)
	}
}

// forward reports that the beginning of the response was forwarded. If the exchange is over,
// the body is complete or never will be.
func (e *exchange) forward(over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forwarded = true
	switch {
	case e.bodyDone:
		e.hashing.Do(e.hash)
	case over:
		e.body.drop(incomplete)
		e.endBody()
	}
}

// responseBody is the body of a response. It observes what is read.
type responseBody struct {
	io.ReadCloser
	exchange *exchange
	reads    int
}

func (b *responseBody) Read(p []byte) (int, error) {
	e := b.exchange
	if b.reads++; b.reads == 2 {
		e.forward(false)
	}
	n, err := b.ReadCloser.Read(p)
	now := time.Now()
	e.client.takes(now)
	if e.endpoint != "" && (n > 0 || err != nil) {
		e.ended = now
		if !e.proxy.guard(func() { e.observe(p[:n], err) }) {
			e.opaque = true
		}
	}
	return n, err
}

// responseWriter limits the time in which the client must take the head of a response.
type responseWriter struct {
	http.ResponseWriter
	client *client
}

// Unwrap is for http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sends a status except 100, which net/http sends when the body is read.
func (w *responseWriter) WriteHeader(status int) {
	if status != http.StatusContinue {
		w.client.takes(time.Now())
		w.ResponseWriter.WriteHeader(status)
	}
}

// client disconnects a client that neither sends its body nor takes its response for the
// stall time, and would occupy memory and a slot of the server.
type client struct {
	conn    *http.ResponseController
	stall   time.Duration
	begun   time.Time // the body
	sent    int       // bytes of it
	sending time.Time // when the deadlines were set
	taking  time.Time
}

// sends extends the read deadline: by a stall, and to 1 kB/s for the whole body.
func (c *client) sends() {
	now := time.Now()
	if now.Sub(c.sending) <= c.stall/8 {
		return
	}
	if c.begun.IsZero() {
		c.begun = now
	}
	c.sending = now
	elapsed := now.Sub(c.begun)
	c.conn.SetReadDeadline(now.Add(c.stall + min(0, time.Duration(c.sent)*time.Millisecond-elapsed)))
}

// takes extends the write deadline.
func (c *client) takes(now time.Time) {
	if now.Sub(c.taking) > c.stall/8 {
		c.taking = now
		c.conn.SetWriteDeadline(now.Add(c.stall))
	}
}

// guard calls f and recovers from a panic, which must not harm the traffic.
func (p *Proxy) guard(f func()) (ok bool) {
	defer func() {
		if !ok {
			recover()
			p.count(func(sum *Counts) { sum.Faults++ })
		}
	}()
	f()
	return true
}

// inflaterSize is the memory for decoding a gzip body, in bytes.
const inflaterSize = 64 << 10

// beginResponse reads the head of a response.
func (e *exchange) beginResponse(r *http.Response) {
	if e.endpoint == "" {
		return
	}
	e.status = r.StatusCode
	e.streamed = strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "text/event-stream")
	switch coding := r.Header.Get("Content-Encoding"); {
	case coding == "" || strings.EqualFold(coding, "identity"):
	case strings.EqualFold(coding, "gzip") && e.proxy.memory.take(inflaterSize):
		e.inflater = http1.NewInflater()
	default:
		e.opaque = true
	}
	e.whole = buffer{memory: &e.proxy.memory, most: e.proxy.cfg.MaxBody}
	e.observer = openai.Observe(e.proxy.cfg.Encoder != nil, &e.proxy.events)
}

// observe reads a piece of the response and the error that came with it.
func (e *exchange) observe(piece []byte, err error) {
	if err != nil {
		e.readErr = err
	}
	switch {
	case e.opaque || e.status != http.StatusOK:
	case e.inflater == nil:
		e.decoded(piece)
	default:
		e.opaque = !inflate(e.inflater, piece, err == io.EOF, func(b []byte) bool { e.decoded(b); return true })
	}
}

// inflate decodes the next piece of a gzip body for take, until take returns false. It
// returns false if the body is not valid, or not complete after the last piece.
func inflate(z *http1.Inflater, piece []byte, last bool, take func([]byte) bool) (ok bool) {
	z.Feed(piece)
	if last {
		z.End()
	}
	for {
		decoded, err := z.Next()
		if err != nil || decoded == nil {
			return err == nil || err == io.EOF
		}
		if !take(decoded) {
			return true
		}
	}
}

func (e *exchange) decoded(piece []byte) {
	if !e.streamed {
		e.whole.write(piece)
		return
	}
	e.observer.Stream(piece, e.ended)
	if grown := e.observer.Held() - e.textBytes; grown > 0 {
		if e.proxy.memory.take(grown) {
			e.textBytes += grown
		} else {
			e.observer.Forget()
		}
	}
}

// end ends the second half of an exchange.
func (e *exchange) end(clientLeft bool) {
	if e.endpoint == "" {
		return
	}
	e.proxy.count(func(sum *Counts) { sum.InFlight-- })
	if e.ended.IsZero() {
		e.ended = time.Now()
	}
	e.clientLeft = clientLeft
	e.forward(true)
	e.proxy.mu.Lock()
	if e.responseOver = true; e.turn != nil {
		e.turn.Ended = e.ended
	}
	e.proxy.mu.Unlock()
	e.endHalf()
}

// conclude releases the memory of the response and counts how the exchange ended.
func (e *exchange) conclude() {
	e.opaque = !e.proxy.guard(e.closeObserver) || e.opaque
	e.proxy.memory.give(e.textBytes)
	whole := e.readErr == io.EOF
	switch {
	case e.clientLeft && !whole, e.status != 0 && e.readErr == nil: // the rest was not read
		e.class = replay.Abandoned
	case e.status == 0:
		e.class = replay.Connect
	case e.status != http.StatusOK:
		e.class = replay.HTTPError
	case e.opaque && whole:
		e.class = replay.OK
	case e.opaque:
		e.class = replay.Truncated
	default:
		e.class = e.observed.Class
	}
	e.proxy.count(func(sum *Counts) {
		if sum.Ended[e.class]++; e.sampledOut {
			sum.SampledOut++
		}
	})
}

// closeObserver closes the observer and keeps its result.
func (e *exchange) closeObserver() {
	if e.inflater != nil {
		e.inflater.Close()
		e.proxy.memory.give(inflaterSize)
	}
	if e.observer == nil {
		return
	}
	switch {
	case e.whole.dropped != "":
		e.opaque = true
	case !e.streamed && e.status == http.StatusOK && e.readErr == io.EOF:
		copies := len(e.whole.bytes) // of its texts
		if !e.proxy.memory.take(copies) {
			e.opaque = true
			break
		}
		defer e.proxy.memory.give(copies)
		e.observer.Whole(e.whole.bytes)
	}
	e.observed = e.observer.End(e.readErr)
	e.whole.drop("")
	e.observer = nil
}
