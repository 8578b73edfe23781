package http1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

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

// While the gaps between reads are within the limit, only the deadline of the
// response passes. After a longer gap the idle deadline passes, at most an eighth of
// the limit late.
func TestIdleDeadline(t *testing.T) {
	start := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.Int64Range(8, 1e10).Draw(t, "limit"))
		deadline := start.Add(time.Duration(rapid.Int64Range(1, 1e11).Draw(t, "timeout")))
		d := deadlines{response: deadline, idle: limit}
		if until := d.begin(); until != deadline {
			t.Fatalf("the idle deadline counts %v before the start", deadline.Sub(until))
		}
		now := start
		until, moved := d.received(Read, now)
		if !moved {
			t.Fatal("the start of the content does not set the idle deadline")
		}
		for range rapid.IntRange(0, 30).Draw(t, "arrivals") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(limit)).Draw(t, "gap")))
			if now.After(until) && until.Before(deadline) {
				t.Fatalf("limit %v: ended %v before the silence had lasted so long", limit, now.Sub(until))
			}
			if !now.Before(deadline) {
				return
			}
			if moved, ok := d.received(Read, now); ok {
				until = moved
			}
			if until.After(deadline) || until.After(now.Add(limit+limit/8)) {
				t.Fatalf("limit %v: it would be waited %v longer", limit, until.Sub(now))
			}
		}
		silent := errors.As(d.explain(os.ErrDeadlineExceeded), new(*IdleError))
		if silent != until.Before(deadline) || d.explain(io.EOF) != io.EOF {
			t.Fatalf("%v before the response's deadline, silent: %t", deadline.Sub(until), silent)
		}
	})
	deadline := start.Add(time.Hour)
	none := deadlines{response: deadline}
	if until, _ := none.received(Read, start.Add(time.Minute)); until != deadline || none.begin() != deadline || none.explain(os.ErrDeadlineExceeded) != os.ErrDeadlineExceeded {
		t.Error("an idle deadline without a limit")
	}
}

// Each phase of a response has its own deadline, and none is later than that of the
// response.
func TestDeadlineOfEachPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		idle := 80*s + 10*s // an eighth late
		for _, tc := range []struct {
			response  time.Duration
			actions   []Action // one per second
			want      time.Duration
			wantError error
		}{
			{1000 * s, nil, 300 * s, ErrNotStarted},
			{200 * s, nil, 200 * s, os.ErrDeadlineExceeded},
			{1000 * s, []Action{Await, Await, Await}, 300 * s, ErrNotStarted}, // keep-alives are no start
			{1000 * s, []Action{Await, Read}, 1*s + idle, &IdleError{80 * s}},
			{50 * s, []Action{Read}, 50 * s, os.ErrDeadlineExceeded},
			{1000 * s, []Action{Read, Linger}, 1*s + restTime, os.ErrDeadlineExceeded},
			{1000 * s, []Action{Read, Linger, Linger}, 1*s + restTime, os.ErrDeadlineExceeded},       // the wait is not extended
			{1000 * s, []Action{Read, Linger, Read}, 2*s + idle, &IdleError{80 * s}},                 // the answer goes on
			{1000 * s, []Action{Read, Linger, Read, Linger}, 3*s + restTime, os.ErrDeadlineExceeded}, // and ends again
			{1000 * s, []Action{Await, Drain}, 1*s + restTime, os.ErrDeadlineExceeded},
		} {
			start := time.Now()
			d := deadlines{response: start.Add(tc.response), start: start.Add(300 * s), idle: 80 * s}
			until := d.begin()
			for i, action := range tc.actions {
				if i > 0 {
					time.Sleep(s)
				}
				if moved, ok := d.received(action, time.Now()); ok {
					until = moved
				}
			}
			err := d.explain(os.ErrDeadlineExceeded)
			if got := until.Sub(start); got != tc.want || err.Error() != tc.wantError.Error() || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("actions %v of a response of %v: the deadline is %v (%v), want %v (%v)", tc.actions, tc.response, got, err, tc.want, tc.wantError)
			}
		}
	})
}

// An endless flood of heads, or of what is none, ends the response after a bounded
// number of bytes, and nothing that was parsed is kept.
func TestFloodOfHeads(t *testing.T) {
	t.Parallel()
	const piece, most = 16 << 10, 96 << 10
	for text, want := range map[string]error{
		"HTTP/1.1 102 Processing\r\n\r\n":                                                ErrInterim,
		"HTTP/1.1 103 Early Hints\r\nLink: </" + strings.Repeat("a", 4000) + ">\r\n\r\n": ErrInterim,
		"HTTP/1.1 100 Continue\n\n":                                                      nil, // not accepted
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 4000):                         nil,
		"\r\n": nil,
		"\n":   nil,
		"x":    nil,
	} {
		for _, size := range []int{7, 1000, piece} {
			var got collector
			r := Response{Sink: &got}
			flood := []byte(strings.Repeat(text, 4*most/len(text)+2))
			fed, over := 0, false
			for !over && fed+size <= len(flood) {
				over = r.Feed(flood[fed:fed+size], poll.Arrival{})
				fed += size
				if cap(r.head) > 4*piece {
					t.Fatalf("%.30q in pieces of %d: %d bytes are kept", text, size, cap(r.head))
				}
			}
			if !over || fed > most || !errors.As(got.err, new(*HeadError)) || want != nil && !errors.Is(got.err, want) {
				t.Errorf("%.30q in pieces of %d: over is %t after %d bytes with %v", text, size, over, fed, got.err)
			}
		}
	}
}

// At the deadline, Dial fails with os.ErrDeadlineExceeded, whichever timer of that
// instant fires first: net.Dialer's or that of its context. Before it, and after a
// cancellation, the error is the dialer's.
func TestDialErrors(t *testing.T) {
	refused := errors.New("connection refused")
	for _, test := range []struct {
		after time.Duration // when the dialer fails; the deadline is after a second
		ended bool          // the caller's context is
		want  error
	}{{time.Second, false, os.ErrDeadlineExceeded}, {time.Second - 1, false, refused}, {0, true, refused}} {
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if test.ended {
					cancel()
				}
				defer cancel()
				h := Host{DialContext: func(context.Context, string, string) (net.Conn, error) {
					time.Sleep(test.after)
					return nil, refused
				}}
				if _, err := h.Dial(ctx, time.Now().Add(time.Second)); err != test.want {
					t.Fatalf("after %v: %v, want %v", test.after, err, test.want)
				}
			})
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// zipped returns a gzip encoding of texts, flushed after each, and where each one is
// complete.
func zipped(texts ...string) (encoded []byte, complete []int) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for _, text := range texts {
		io.WriteString(w, text)
		w.Flush()
		complete = append(complete, out.Len())
	}
	w.Close()
	return out.Bytes(), complete
}

const zippedHead = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"

// Wherever an encoded body is cut, what has been flushed is passed on at once, with
// the client's timestamps, and the rest at the end.
func TestInflate(t *testing.T) {
	t.Parallel()
	texts := []string{"data: one\n\n", strings.Repeat("data: two\n\n", 5000), "", "data: three\n\n"}
	encoded, complete := zipped(texts...)
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		sink := &collector{}
		r := &Response{Sink: sink}
		at := poll.Arrival{Time: time.Now(), Kernel: true}
		r.Feed(fmt.Appendf(nil, zippedHead, len(encoded)), at)
		over := false
		for sent := 0; sent < len(encoded); {
			n := min(1+random.IntN(40), len(encoded)-sent)
			over = r.Feed(bytes.Clone(encoded[sent:sent+n]), at)
			sent += n
			want := ""
			for i, end := range complete {
				if sent >= end {
					want += texts[i]
				}
			}
			if got := sink.body; !strings.HasPrefix(got, want) || !strings.HasPrefix(strings.Join(texts, ""), got) {
				t.Fatalf("%d bytes after %d encoded ones, want %d", len(got), sent, len(want))
			}
		}
		if !over || sink.err != io.EOF || sink.ends != 1 || sink.body != strings.Join(texts, "") || sink.kernel {
			t.Fatalf("over %t, error %v, %d ends, %d bytes, kernel %t", over, sink.err, sink.ends, len(sink.body), sink.kernel)
		}
	}
}

// Damaged and cut bodies end with their error, once, and leave no coroutine behind.
func TestInflateErrors(t *testing.T) {
	t.Parallel()
	encoded, _ := zipped("data: one\n\n", "data: two\n\n")
	damaged := bytes.Clone(encoded)
	damaged[len(damaged)-5] ^= 1 // of the checksum
	for name, tc := range map[string]struct {
		body   []byte
		length int
		action Action
		want   error // ErrEncoding, or that of the connection
		ends   int
	}{
		"not gzip":     {[]byte("data: one\n\n"), 11, Read, ErrEncoding, 1},
		"damaged":      {damaged, len(damaged), Read, ErrEncoding, 1},
		"cut short":    {encoded[:20], 20, Read, ErrEncoding, 1},
		"disconnected": {encoded[:20], len(encoded), Read, io.ErrUnexpectedEOF, 1},
		"more follows": {append(bytes.Clone(encoded), "tide"...), len(encoded) + 4, Read, ErrEncoding, 1},
		"stopped":      {encoded, len(encoded), Stop, nil, 0},
		"drained":      {encoded, len(encoded), Drain, io.EOF, 1},
		"empty":        {nil, 0, Read, io.EOF, 1},
	} {
		sink := &collector{action: tc.action}
		r := &Response{Sink: sink}
		at := poll.Arrival{Time: time.Now()}
		if !r.Feed(append(fmt.Appendf(nil, zippedHead, tc.length), tc.body...), at) {
			r.End(io.EOF, at)
		}
		if !errors.Is(sink.err, tc.want) || sink.ends != tc.ends {
			t.Errorf("%s: error %v, want %v; %d ends", name, sink.err, tc.want, sink.ends)
		}
	}
}
