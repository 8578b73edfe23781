//go:build linux

package poll

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The kernel starts to stamp a moment after the request.
	if _, err := stampAll(); err != nil {
		panic(err)
	}
	for tries := 0; !stampsCome() && tries < 10_000; tries++ {
	}
	goleak.VerifyTestMain(m)
}

// stampsCome reports whether the kernel stamps arrivals.
func stampsCome() bool {
	l, err := New()
	if err != nil {
		panic(err)
	}
	defer l.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer ln.Close()
	c, peer, err := connect(l, ln)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	defer peer.Close()
	peer.Write([]byte("x"))
	h := &collector{want: 1}
	exchange(context.Background(), c, h, later)
	return h.at[0].Kernel
}

// listener accepts the connections whose server end the tests control.
func listener(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func loop(t *testing.T) *Loop {
	t.Helper()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// pair returns a connection of the loop and its other end.
func pair(t *testing.T, l *Loop, ln net.Listener) (*Conn, *net.TCPConn) {
	t.Helper()
	c, peer, err := connect(l, ln)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); peer.Close() })
	return c, peer
}

func connect(l *Loop, ln net.Listener) (*Conn, *net.TCPConn, error) {
	raw, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	c, err := l.Adopt(raw)
	if err != nil {
		return nil, nil, err
	}
	peer, err := ln.Accept()
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, peer.(*net.TCPConn), nil
}

// collector collects bytes until it has want of them.
type collector struct {
	want      int
	got       []byte
	at        []Arrival
	ended     error
	onArrival func()
}

func (h *collector) Feed(b []byte, at Arrival) bool {
	if h.onArrival != nil {
		h.onArrival()
	}
	h.got, h.at = append(h.got, b...), append(h.at, at)
	return len(h.got) >= h.want
}

func (h *collector) End(err error, at Arrival) { h.ended, h.at = err, append(h.at, at) }

var later = time.Now().Add(time.Hour)

func exchange(ctx context.Context, c *Conn, h Handler, deadline time.Time, parts ...[]byte) (sent time.Time, wrote bool, err error) {
	c.Begin(h, deadline, parts...)
	return c.Wait(ctx)
}

func TestExchange(t *testing.T) {
	t.Parallel()
	c, peer := pair(t, loop(t), listener(t))
	for range 3 { // on one connection
		h := &collector{want: 6}
		go func() {
			io.ReadFull(peer, make([]byte, 11))
			peer.Write([]byte("answer"))
		}()
		before := time.Now()
		sent, wrote, err := exchange(context.Background(), c, h, later, []byte("the "), nil, []byte("request"))
		if !wrote || err != nil || string(h.got) != "answer" || h.ended != nil {
			t.Fatalf("wrote %t, %v, got %q, ended %v", wrote, err, h.got, h.ended)
		}
		if at := h.at[0]; !at.Kernel || sent.Before(before) || at.Before(sent) || at.After(time.Now()) {
			t.Errorf("arrived %v, kernel %t, sent %v, before %v", at.Time, at.Kernel, sent, before)
		}
		if !c.Alive() {
			t.Error("the connection is not alive")
		}
	}
	if n := c.loop.Delays().Count(); n != 3 {
		t.Errorf("%d delays of 3 reads", n)
	}
}

// Instants are arrival times, however late the read is.
func TestInstantsAreTheKernels(t *testing.T) {
	t.Parallel()
	l, ln := loop(t), listener(t)
	one, onePeer := pair(t, l, ln)
	two, twoPeer := pair(t, l, ln)
	var written time.Time
	blocks := &collector{want: 1, onArrival: func() {
		// The thread is in this call, so it cannot read the other connection
		// earlier.
		twoPeer.Write([]byte("x"))
		written = time.Now()
	}}
	waits := &collector{want: 1}
	var both sync.WaitGroup
	began := make(chan bool)
	both.Go(func() {
		close(began)
		exchange(context.Background(), two, waits, later)
	})
	<-began
	both.Go(func() { exchange(context.Background(), one, blocks, later) })
	onePeer.Write([]byte("x"))
	both.Wait()
	if at := waits.at[0]; !at.Kernel || at.After(written) {
		t.Errorf("arrived %v after it was written, kernel %t", at.Sub(written), at.Kernel)
	}
	if most := l.Delays().Quantile(1); most <= 0 {
		t.Errorf("the largest delay is %v", most)
	}
}

// Bytes that are read together arrived at most Unread apart.
func TestUnread(t *testing.T) {
	t.Parallel()
	l, ln := loop(t), listener(t)
	one, onePeer := pair(t, l, ln)
	two, twoPeer := pair(t, l, ln)
	var first, second time.Time
	blocks := &collector{want: 1, onArrival: func() {
		io.ReadFull(twoPeer, make([]byte, 1)) // an answer follows its request
		first = time.Now()
		twoPeer.Write([]byte("x"))
		for second = time.Now(); second.Sub(first) < 5*time.Millisecond; second = time.Now() {
		}
		twoPeer.Write([]byte("y"))
	}}
	waits := &collector{want: 2}
	var both sync.WaitGroup
	both.Go(func() { exchange(context.Background(), two, waits, later, []byte("x")) })
	both.Go(func() { exchange(context.Background(), one, blocks, later) })
	onePeer.Write([]byte("x"))
	both.Wait()
	if at := waits.at[0]; len(waits.at) != 1 || at.Before(second) || at.Unread < at.Sub(first) {
		t.Errorf("%d reads, the first %v behind its writing, unread for %v", len(waits.at), at.Sub(first), at.Unread)
	}
}

// Unread covers bytes that arrived before the loop knew of the exchange because
// the sender was interrupted after sending.
func TestUnreadBeforeTheBeginning(t *testing.T) {
	t.Parallel()
	for _, watched := range []bool{false, true} {
		l, ln := loop(t), listener(t)
		c, peer := pair(t, l, ln)
		other, otherPeer := pair(t, l, ln)
		if watched {
			peer.Write([]byte("x"))
			exchange(context.Background(), c, &collector{want: 1}, later)
		}
		first := time.Now()
		for range 2 {
			peer.Write([]byte("x"))
			for at := time.Now(); time.Since(at) < 5*time.Millisecond; {
			}
			// This is read after the other one, so the loop has looked in the
			// meantime.
			otherPeer.Write([]byte("x"))
			exchange(context.Background(), other, &collector{want: 1}, later)
		}
		h := &collector{want: 2}
		l.send(command{kind: begin, conn: c, handler: h, deadline: later, since: first})
		<-c.over
		if at := h.at[0]; len(h.at) != 1 || at.Sub(first) < 5*time.Millisecond || at.Unread < at.Sub(first) {
			t.Errorf("watched %t: %d reads, the last segment %v behind the first, unread for %v", watched, len(h.at), at.Sub(first), at.Unread)
		}
	}
}

// Begin does not block if the peer does not read; Wait sends the rest.
func TestBeginDoesNotWait(t *testing.T) {
	t.Parallel()
	c, peer := pair(t, loop(t), listener(t))
	request := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	h := &collector{want: 2}
	c.Begin(h, later, request[:1], nil, request[1:3], request[3:4], request[4:5], request[5:])
	if len(c.unsent) == 0 {
		t.Fatal("the kernel took all of it: the request is too small for this test")
	}
	got := make([]byte, len(request))
	var serving sync.WaitGroup
	serving.Go(func() {
		io.ReadFull(peer, got)
		peer.Write([]byte("ok"))
	})
	_, wrote, err := c.Wait(context.Background())
	serving.Wait()
	if !wrote || err != nil || !bytes.Equal(got, request) || string(h.got) != "ok" {
		t.Errorf("wrote %t, %v, %d bytes, got %q", wrote, err, len(got), h.got)
	}
}

// An answer ends the exchange even if the request was not read.
func TestAnswerBeforeTheRequestWasRead(t *testing.T) {
	t.Parallel()
	c, peer := pair(t, loop(t), listener(t))
	h := &collector{want: 2}
	peer.Write([]byte("no"))
	_, wrote, err := exchange(context.Background(), c, h, later, make([]byte, 64<<20))
	if wrote || err != nil || string(h.got) != "no" {
		t.Errorf("wrote %t, %v, got %q", wrote, err, h.got)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tc := range map[string]struct {
		ctx      context.Context
		deadline time.Time
		peer     func(*net.TCPConn)
		says     string
		want     error
	}{
		"end":               {context.Background(), later, func(p *net.TCPConn) { p.Close() }, "", io.EOF},
		"said, then end":    {context.Background(), later, func(p *net.TCPConn) { p.Write([]byte("bye")); p.Close() }, "bye", io.EOF},
		"reset":             {context.Background(), later, func(p *net.TCPConn) { p.SetLinger(0); p.Close() }, "", syscall.ECONNRESET},
		"deadline":          {context.Background(), time.Unix(1, 0), func(*net.TCPConn) {}, "", os.ErrDeadlineExceeded},
		"canceled":          {canceled, later, func(*net.TCPConn) {}, "", context.Canceled},
		"deadline by far":   {canceled, time.Unix(1, 0), func(*net.TCPConn) {}, "", nil},
		"deadline of later": {canceled, later.Add(-time.Second), func(*net.TCPConn) {}, "", context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, peer := pair(t, loop(t), listener(t))
			tc.peer(peer)
			h := &collector{want: 100}
			exchange(tc.ctx, c, h, tc.deadline)
			if tc.want != nil && !errors.Is(h.ended, tc.want) || h.ended == nil || string(h.got) != tc.says {
				t.Errorf("ended with %v and %q, want %v and %q", h.ended, h.got, tc.want, tc.says)
			}
		})
	}
}

// The handler can change the deadline.
func TestSetDeadline(t *testing.T) {
	t.Parallel()
	c, peer := pair(t, loop(t), listener(t))
	peer.Write([]byte("x"))
	h := &collector{want: 2, onArrival: func() { c.SetDeadline(time.Now()) }}
	if exchange(context.Background(), c, h, later); h.ended != os.ErrDeadlineExceeded {
		t.Errorf("ended with %v", h.ended)
	}
}

func TestAlive(t *testing.T) {
	t.Parallel()
	l, ln := loop(t), listener(t)
	quiet, _ := pair(t, l, ln)
	if !quiet.Alive() {
		t.Error("a quiet connection is dead")
	}
	talks, peer := pair(t, l, ln)
	peer.Write([]byte("x"))
	ended, peer := pair(t, l, ln)
	peer.CloseWrite()
	for talks.Alive() || ended.Alive() { // until the segments have arrived
		time.Sleep(time.Millisecond)
	}
}

// Bytes that arrive between two exchanges belong to the second.
func TestWhatComesBetween(t *testing.T) {
	t.Parallel()
	l, ln := loop(t), listener(t)
	c, peer := pair(t, l, ln)
	peer.Write([]byte("one"))
	exchange(context.Background(), c, &collector{want: 3}, later)
	peer.Write([]byte("two"))
	// Another connection is read afterwards, so the loop has seen the bytes.
	other, otherPeer := pair(t, l, ln)
	otherPeer.Write([]byte("x"))
	exchange(context.Background(), other, &collector{want: 1}, later)
	h := &collector{want: 3}
	exchange(context.Background(), c, h, later)
	if string(h.got) != "two" {
		t.Errorf("got %q", h.got)
	}
}

// Bytes that a round leaves unread are read in the next.
func TestTurns(t *testing.T) {
	t.Parallel()
	l, ln := loop(t), listener(t)
	first, firstPeer := pair(t, l, ln)
	firstPeer.Write([]byte("x"))
	small := &collector{want: 1, onArrival: func() {
		l.receiver.buf = l.receiver.buf[:1000]
		l.receiver.part.SetLen(1000)
	}}
	exchange(context.Background(), first, small, later)
	c, peer := pair(t, l, ln)
	peer.Write(make([]byte, 30_000))
	h := &collector{want: 30_000}
	if exchange(context.Background(), c, h, time.Now().Add(10*time.Second)); h.ended != nil || len(h.at) < 30 {
		t.Errorf("%d bytes came with %d reads, ended %v", len(h.got), len(h.at), h.ended)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	l := loop(t)
	c, peer := pair(t, l, listener(t))
	h := &collector{want: 2, onArrival: func() { go l.Close() }}
	peer.Write([]byte("x"))
	if exchange(context.Background(), c, h, later); h.ended != ErrClosed {
		t.Errorf("ended with %v", h.ended)
	}
	l.Close()
	h = &collector{want: 1}
	if exchange(context.Background(), c, h, later); h.ended != ErrClosed {
		t.Errorf("ended with %v", h.ended)
	}
}

// Canceling a finished exchange does not affect the next.
func TestCanceledTooLate(t *testing.T) {
	t.Parallel()
	l := loop(t)
	c, peer := pair(t, l, listener(t))
	peer.Write([]byte("x"))
	before := &collector{want: 1}
	exchange(context.Background(), c, before, later)
	h := &collector{want: 2}
	h.onArrival = func() {
		if len(h.got) == 0 {
			go func() {
				l.send(command{kind: end, conn: c, handler: before, err: context.Canceled})
				peer.Write([]byte("x"))
			}()
		}
	}
	peer.Write([]byte("x"))
	if exchange(context.Background(), c, h, later); h.ended != nil {
		t.Errorf("ended with %v", h.ended)
	}
}

func TestAdoptRefuses(t *testing.T) {
	t.Parallel()
	one, two := net.Pipe()
	defer two.Close()
	if _, err := loop(t).Adopt(one); err == nil {
		t.Error("a pipe was adopted")
	}
	if _, err := one.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Errorf("it was not closed: %v", err)
	}
}
