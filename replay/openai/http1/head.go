package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

const (
	maxHead = 8 << 10 // bytes
	// MaxInterim limits all interim heads of a response, in bytes.
	MaxInterim = 64 << 10
)

// Head holds the parts of a response's head that a client of the API needs.
type Head struct {
	Status      int
	ContentType string // without parameters
	Encoding    string // Content-Encoding
	RetryAfter  string
	Location    string // of a redirect
	length      int    // of the body, as fasthttp reports it: -1 means chunked, less means until the connection ends
	closing     bool   // the server closes the connection
}

// Gzip reports whether the body is encoded with gzip: the Sink gets it decoded.
func (h *Head) Gzip() bool {
	return strings.EqualFold(h.Encoding, "gzip") || strings.EqualFold(h.Encoding, "x-gzip")
}

// Reusable reports whether the server keeps the connection open.
func (h *Head) Reusable() bool { return !h.closing }

var (
	errNeedMore = errors.New("the head is not complete")
	errLongHead = fmt.Errorf("its head is longer than %d KiB", maxHead>>10)
	// ErrInterim reports a flood of interim responses.
	ErrInterim = fmt.Errorf("more than %d KiB of interim responses (1xx) before the response", MaxInterim>>10)
)

// parseHead parses the head at the start of text, skipping interim ones (1xx), and
// returns the rest of text. The error is errNeedMore if the head is incomplete; the
// rest then starts with it.
func parseHead(text []byte) (h Head, rest []byte, err error) {
	p := headParsers.Get().(*headParser)
	defer headParsers.Put(p)
	for {
		p.text.Reset(text)
		p.in.Reset(&p.text)
		err := p.header.Read(p.in)
		switch {
		case errors.Is(err, io.EOF):
			return h, text, errNeedMore
		case err != nil:
			return h, nil, withoutContent(err)
		}
		text = text[len(text)-p.text.Len()-p.in.Buffered():]
		if p.header.StatusCode() >= 200 {
			return p.head(), text, nil
		}
	}
}

// withoutContent returns an error of fasthttp without the bytes of the head, which it
// quotes.
func withoutContent(err error) error {
	if _, long := errors.AsType[*fasthttp.ErrSmallBuffer](err); long {
		return errLongHead
	}
	text := strings.TrimPrefix(err.Error(), "error when reading response headers: ")
	if quoted := strings.IndexAny(text, "\"'`"); quoted >= 0 {
		text = text[:quoted]
	}
	text, _, _ = strings.Cut(text, ": buffer size=")
	return errors.New(strings.TrimRight(text, ": "))
}

// headParser is reused because it is far larger than a Head.
type headParser struct {
	text   bytes.Reader
	in     *bufio.Reader
	header fasthttp.ResponseHeader
}

var headParsers = sync.Pool{New: func() any { return &headParser{in: bufio.NewReaderSize(nil, maxHead)} }}

func (p *headParser) head() Head {
	kind, _, _ := strings.Cut(string(p.header.ContentType()), ";")
	h := Head{
		Status:      p.header.StatusCode(),
		ContentType: strings.TrimSpace(kind),
		Encoding:    string(p.header.ContentEncoding()),
		RetryAfter:  string(p.header.Peek(fasthttp.HeaderRetryAfter)),
		length:      p.header.ContentLength(),
		closing:     p.header.ConnectionClose(),
	}
	if h.Status == fasthttp.StatusNoContent || h.Status == fasthttp.StatusNotModified {
		h.length = 0
	}
	if h.Status/100 == 3 {
		h.Location = string(p.header.Peek(fasthttp.HeaderLocation))
	}
	return h
}
