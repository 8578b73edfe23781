package openai

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// maxHead bounds the head of an answer in bytes.
const maxHead = 8 << 10

// head is what is needed of the head of an answer.
type head struct {
	status   int    // 0 until there was one
	length   int    // of the body, as newFraming takes it
	closing  bool   // the connection is not for another request
	kind     string // content type, without parameters
	encoding string
	// retryAfter is what a server that refuses a request for now says of when
	// to come again.
	retryAfter string
}

var errNeedMore = errors.New("the head has not ended")

// parseHead parses the head that text begins with, past any that only announce
// it, and returns what lies behind. errNeedMore says that it is not all there.
func parseHead(text []byte) (h head, rest []byte, err error) {
	p := headParsers.Get().(*headParser)
	defer headParsers.Put(p)
	for {
		p.text.Reset(text)
		p.in.Reset(&p.text)
		err := p.header.Read(p.in)
		switch {
		case errors.Is(err, io.EOF):
			return h, nil, errNeedMore
		case err != nil:
			return h, nil, err
		}
		text = text[len(text)-p.text.Len()-p.in.Buffered():]
		if p.header.StatusCode() >= 200 {
			return p.head(), text, nil
		}
	}
}

// headParser is what parsing takes. It is far larger than what comes of it.
type headParser struct {
	text   bytes.Reader
	in     *bufio.Reader
	header fasthttp.ResponseHeader
}

var headParsers = sync.Pool{New: func() any { return &headParser{in: bufio.NewReaderSize(nil, maxHead)} }}

func (p *headParser) head() head {
	kind, _, _ := strings.Cut(string(p.header.ContentType()), ";")
	h := head{
		status:   p.header.StatusCode(),
		length:   p.header.ContentLength(),
		closing:  p.header.ConnectionClose(),
		kind:     kind,
		encoding: string(p.header.ContentEncoding()),
	}
	if h.status == fasthttp.StatusTooManyRequests || h.status == fasthttp.StatusServiceUnavailable {
		h.retryAfter = string(p.header.Peek(fasthttp.HeaderRetryAfter))
	}
	return h
}

// retryAfter is how long a server asks to wait from now on: a number of
// seconds or a date. It is 0 where that makes no sense or is over.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := fasthttp.ParseHTTPDate([]byte(value))
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}

// checkStream returns why the answer is not a stream of events, if it is not.
func (h *head) checkStream() error {
	if !strings.EqualFold(strings.TrimSpace(h.kind), "text/event-stream") {
		return fmt.Errorf("content type is %q, not text/event-stream", h.kind)
	}
	if h.encoding != "" && h.encoding != "identity" {
		return fmt.Errorf("the answer is encoded as %q, which was not asked for", h.encoding)
	}
	return nil
}
