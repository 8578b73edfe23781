package http1

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"moontide/replay/openai/http1/http1test"
	"moontide/replay/openai/poll"
)

// collector is a Sink that keeps everything and answers a body with an action.
type collector struct {
	head   Head
	body   string
	kernel bool // of any arrival
	err    error
	ends   int
	action Action
}

func (c *collector) Head(h *Head) Action { c.head = *h; return Read }
func (c *collector) End(err error)       { c.err, c.ends = err, c.ends+1 }
func (c *collector) Body(b []byte, at poll.Arrival) Action {
	c.body, c.kernel = c.body+string(b), c.kernel || at.Kernel
	return c.action
}

// sent is taken before the first write.
func TestSentBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	s := &http1test.Script{Pieces: []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntide\r\n0\r\n\r\n"}}
	h := Host{DialContext: func(context.Context, string, string) (net.Conn, error) { return s, nil }}
	c, err := h.Conn(context.Background(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var got collector
	before := time.Now()
	r := &Response{Sink: &got}
	c.Begin(r, []byte("head"), []byte("body"))
	sent, err := c.Wait(context.Background())
	if err != nil || len(s.Wrote) != 2 || got.body != "tide" || got.err != io.EOF || !r.Reusable {
		t.Fatalf("%v, %d writes, %+v", err, len(s.Wrote), got)
	}
	if sent.Before(before) || sent.After(s.Wrote[0]) {
		t.Errorf("sent %v after it began, first write %v after that", sent.Sub(before), s.Wrote[0].Sub(sent))
	}
}

// Errors do not contain the client's port, so equal faults have equal texts.
func TestEqualFaultsReadEqual(t *testing.T) {
	t.Parallel()
	here, there := &net.TCPAddr{Port: 40000}, &net.TCPAddr{Port: 8000}
	err := withoutSource(&net.OpError{Op: "read", Net: "tcp", Source: here, Addr: there, Err: io.ErrClosedPipe})
	if err.Error() != "read tcp :8000: io: read/write on closed pipe" {
		t.Error(err)
	}
	if withoutSource(io.EOF) != io.EOF || withoutSource(nil) != nil {
		t.Error("other errors are not left alone")
	}
}

func TestChunkedBody(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		body string
		err  error
	}{
		"3\r\nabc\r\n0\r\n\r\n":                {"abc", nil},
		"3\nabc\n0\n\n":                        {"abc", nil},
		"03 \r\nabc\r\n00;x=y\r\nA: b\r\n\r\n": {"abc", nil},
		"0\r\n\r\n":                            {"", nil},
		"3\r\nabc\r\n0\r\n":                    {"abc", io.ErrUnexpectedEOF},
		"3\r\nab":                              {"ab", io.ErrUnexpectedEOF},
		"3\r\nabc":                             {"abc", io.ErrUnexpectedEOF},
		"":                                     {"", io.ErrUnexpectedEOF},
		"3\r\nabcd\r\n0\r\n\r\n":               {"abc", ErrChunked},
		"-1\r\n":                               {"", ErrChunked},
		"+3\r\nabc\r\n":                        {"", ErrChunked},
		"\r\n":                                 {"", ErrChunked},
		"0x3\r\nabc\r\n":                       {"", ErrChunked},
		"ffffffffffffffff\r\nabc\r\n":          {"", ErrChunked},
		"7fffffffffffffff\r\nabc":              {"abc", io.ErrUnexpectedEOF},
		"8000000000000000\r\nabc":              {"", ErrChunked},
		"10000000000000003\r\nabc\r\n":         {"", ErrChunked},
	} {
		for size := 1; size <= len(text)+1; size++ {
			body, err := unchunked(text, size)
			if body != want.body || err != want.err {
				t.Errorf("%q in pieces of %d is %q, %v, want %q, %v", text, size, body, err, want.body, want.err)
			}
		}
	}
}

// unchunked decodes a chunked body that arrives in pieces.
func unchunked(text string, size int) (body string, err error) {
	f := newBody(-1)
	for rest := []byte(text); ; {
		piece := rest[:min(size, len(rest))]
		if rest = rest[len(piece):]; len(piece) == 0 {
			return body, f.end(io.EOF)
		}
		for {
			var data []byte
			if data, piece, err = f.next(piece); err == io.EOF {
				return body, nil
			}
			body += string(data)
			if err != nil {
				return body, err
			}
			if len(data) == 0 {
				break
			}
		}
	}
}
