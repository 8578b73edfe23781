package openai

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/openai/poll"
)

// script is a connection whose reads bring one piece each.
type script struct {
	net.Conn
	pieces []string
	read   int
	at     []time.Time // when each piece was read
	wrote  []time.Time
	onRead func(piece int)

	mu       sync.Mutex
	deadline time.Time
	closed   bool
}

func (s *script) Read(p []byte) (int, error) {
	if s.read == len(s.pieces) {
		return 0, io.EOF
	}
	if s.onRead != nil {
		s.onRead(s.read)
	}
	n := copy(p, s.pieces[s.read])
	if s.pieces[s.read] = s.pieces[s.read][n:]; s.pieces[s.read] == "" {
		s.read++
	}
	s.at = append(s.at, time.Now())
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.wrote = append(s.wrote, time.Now())
	return len(p), nil
}

func (s *script) SetDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = at
	return nil
}

func (s *script) Close() error {
	s.closed = true
	return nil
}

func scripted(s *script) *blocking {
	timed := &timedConn{Conn: s}
	return &blocking{conn: timed, timed: timed}
}

// An event is handed over, and stamped, with the read that completed it.
func TestArrival(t *testing.T) {
	t.Parallel()
	two := inChunk(tide + theEnd)
	for name, tc := range map[string]struct {
		pieces []string
		reads  int // that it takes for the first event
	}{
		"a chunk a read":                   {[]string{inChunk(tide), two}, 1},
		"with the header":                  {[]string{"", inChunk(tide)}, 1},
		"without the end of its chunk":     {[]string{strings.TrimSuffix(inChunk(tide), "\r\n"), "\r\n" + two}, 1},
		"with half the end of its chunk":   {[]string{strings.TrimSuffix(inChunk(tide), "\n"), "\n" + two}, 1},
		"with the size of the next chunk":  {[]string{inChunk(tide) + two[:4], two[4:]}, 1},
		"with half the size of the next":   {[]string{inChunk(tide) + two[:1], two[1:]}, 1},
		"with the beginning of the next":   {[]string{inChunk(tide) + two[:30], two[30:]}, 1},
		"a byte of it later":               {[]string{inChunk(tide)[:len(tide)+3], inChunk(tide)[len(tide)+3:] + two}, 2},
		"over two chunks":                  {[]string{inChunk(tide[:9]), inChunk(tide[9:]), two}, 2},
		"over three reads":                 {[]string{inChunk(tide)[:9], inChunk(tide)[9:30], inChunk(tide)[30:] + two}, 3},
		"behind a chunk of comments alone": {[]string{inChunk(": wait\n\n"), inChunk(tide), two}, 2},
	} {
		pieces := append([]string{streamed}, tc.pieces...)
		if pieces[1] == "" {
			pieces = append([]string{streamed + pieces[2]}, pieces[3:]...)
			tc.reads--
		}
		var a answer
		start := time.Now()
		for i, piece := range pieces {
			if a.stream.first.IsZero() != (i <= tc.reads) {
				t.Errorf("%s: after %d reads the first event was at %v", name, i, a.stream.first)
			}
			a.feed([]byte(piece), poll.Arrival{Time: start.Add(time.Duration(i) * time.Second), Kernel: true})
		}
		if got := a.stream.first.Sub(start); got != time.Duration(tc.reads)*time.Second {
			t.Errorf("%s: it arrived with the read at %v, want %d s", name, got, tc.reads)
		}
	}
}

// Sent is before the first byte is with the kernel.
func TestSentBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	s := &script{pieces: []string{streamed + inChunk(complete) + lastChunk}}
	before := time.Now()
	var a answer
	c := scripted(s)
	c.begin(&a, before.Add(time.Hour), []byte("head"), []byte("body"))
	sent, wrote, err := c.wait(context.Background())
	if !wrote || err != nil || len(s.wrote) != 2 || !a.stream.done {
		t.Fatalf("wrote %v, %v, %d writes", wrote, err, len(s.wrote))
	}
	if sent.Before(before) || sent.After(s.wrote[0]) {
		t.Errorf("sent %v after it began, first write %v after that", sent.Sub(before), s.wrote[0].Sub(sent))
	}
}

// A request that is called off when all of its answer is there has ended well,
// but the deadline that was to end it may yet come: its connection is not for
// others. One that was left alone is, without a deadline.
func TestCalledOffTooLate(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{true, false} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := &script{pieces: []string{streamed + inChunk(tide+theEnd), lastChunk}}
		s.onRead = func(piece int) {
			if late && piece == 1 {
				cancel()
			}
		}
		c := client(t, "http://localhost")
		conn := scripted(s)
		c.servers[0].idle.put(conn, time.Now())
		wantOK(t, prepare(t, c, row).Send(ctx), 1)
		if conn.alive() == late {
			t.Errorf("late %v: alive is %v", late, !late)
		}
		if !late && (!s.deadline.IsZero() || c.servers[0].idle.count() != 1) {
			t.Errorf("%d idle connections with the deadline %v", c.servers[0].idle.count(), s.deadline)
		}
	}
}

// Nothing is read behind [DONE] for a connection that cannot be kept.
func TestNothingIsReadInVain(t *testing.T) {
	t.Parallel()
	for _, first := range []string{streamed + inChunk(tide+theEnd), untilEnd + tide + theEnd} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := &script{pieces: []string{first, "more"}}
		if strings.HasPrefix(first, streamed) {
			s.onRead = func(int) { cancel() }
		}
		c := client(t, "http://localhost")
		c.servers[0].idle.put(scripted(s), time.Now())
		wantOK(t, prepare(t, c, row).Send(ctx), 1)
		if s.read != 1 || !s.closed {
			t.Errorf("%.40q: %d reads, closed is %v", first, s.read, s.closed)
		}
	}
}

// What the server said is not the user's doing.
func TestErrorWhileCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &script{pieces: []string{answerOf("500 Oh", "text/plain", "no")}, onRead: func(int) { cancel() }}
	c := client(t, "http://localhost")
	c.servers[0].idle.put(scripted(s), time.Now())
	wantClass(t, prepare(t, c, row).Send(ctx), replay.HTTPError, "HTTP status 500")
}

// The client's port is no part of an error: equal faults have equal texts.
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
		"3\r\nabcd\r\n0\r\n\r\n":               {"abc", errChunk},
		"-1\r\n":                               {"", errChunk},
		"+3\r\nabc\r\n":                        {"", errChunk},
		"\r\n":                                 {"", errChunk},
		"0x3\r\nabc\r\n":                       {"", errChunk},
		"ffffffffffffffff\r\nabc\r\n":          {"", errChunk},
		"7fffffffffffffff\r\nabc":              {"abc", io.ErrUnexpectedEOF},
		"8000000000000000\r\nabc":              {"", errChunk},
		"10000000000000003\r\nabc\r\n":         {"", errChunk},
	} {
		for size := 1; size <= len(text)+1; size++ {
			body, err := unchunked(text, size)
			if body != want.body || err != want.err {
				t.Errorf("%q in pieces of %d is %q, %v, want %q, %v", text, size, body, err, want.body, want.err)
			}
		}
	}
}

// unchunked takes the chunked encoding off a text that arrives in pieces.
func unchunked(text string, size int) (body string, err error) {
	f := newFraming(-1)
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
