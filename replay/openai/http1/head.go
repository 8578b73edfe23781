package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

const maxHead = 8 << 10 // bytes

// Head holds the parts of a response's head that a client of the API needs.
type Head struct {
	Status      int
	ContentType string // without parameters
	Encoding    string // Content-Encoding
	RetryAfter  string
	length      int  // of the body, as fasthttp reports it: -1 means chunked, less means until the connection ends
	closing     bool // the server closes the connection
}

// Reusable reports whether the server keeps the connection open.
func (h *Head) Reusable() bool { return !h.closing }

var errNeedMore = errors.New("the head is not complete")

// parseHead parses the head at the start of text, skipping interim ones (1xx), and
// returns the rest of text. The error is errNeedMore if the head is incomplete.
func parseHead(text []byte) (h Head, rest []byte, err error) {
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

// headParser is reused because it is far larger than a Head.
type headParser struct {
	text   bytes.Reader
	in     *bufio.Reader
	header fasthttp.ResponseHeader
}

var headParsers = sync.Pool{New: func() any { return &headParser{in: bufio.NewReaderSize(nil, maxHead)} }}

func (p *headParser) head() Head {
	kind, _, _ := strings.Cut(string(p.header.ContentType()), ";")
	return Head{
		Status:      p.header.StatusCode(),
		ContentType: strings.TrimSpace(kind),
		Encoding:    string(p.header.ContentEncoding()),
		RetryAfter:  string(p.header.Peek(fasthttp.HeaderRetryAfter)),
		length:      p.header.ContentLength(),
		closing:     p.header.ConnectionClose(),
	}
}
