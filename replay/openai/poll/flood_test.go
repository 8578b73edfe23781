//go:build linux

package poll

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// flood counts the bytes of connections that send faster than they are read.
type flood struct {
	fed    int
	onFeed func(fed int)
	over   bool
}

func (f *flood) Feed(b []byte, _ Arrival) bool {
	f.fed += len(b)
	f.onFeed(f.fed)
	return f.over
}

func (f *flood) End(error, Arrival) {}

// Beside many connections that send without end, an event on another connection is
// handled after few of their bytes, and the deadlines of others are kept.
func TestFloods(t *testing.T) {
	t.Parallel()
	const floods, most = 20, 2 << 20
	l, ln := loop(t), listener(t)
	good, goodPeer := pair(t, l, ln)
	silent, _ := pair(t, l, ln)
	if _, err := goodPeer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	exchange(context.Background(), good, &collector{want: 1}, later)

	all := &flood{}
	sentAt, waits := 0, []int(nil) // bytes of floods before an event was sent, and until it was handled
	events := &collector{want: 20}
	events.onArrival = func() {
		waits = append(waits, all.fed-sentAt)
		sentAt = 0
	}
	all.onFeed = func(fed int) {
		if fed > 8<<20 && sentAt == 0 && len(waits) < events.want { // once the floods run
			sentAt = fed
			goodPeer.Write([]byte("x"))
		}
	}
	good.Begin(events, later)
	var sending, reading sync.WaitGroup
	defer sending.Wait()
	for range floods {
		c, peer := pair(t, l, ln)
		sending.Go(func() { pour(peer) })
		reading.Go(func() { exchange(context.Background(), c, all, later) })
		defer peer.Close()
	}
	timedOut := &collector{want: 1}
	reading.Go(func() { exchange(context.Background(), silent, timedOut, time.Now().Add(time.Millisecond)) })
	good.Wait(context.Background())
	if events.ended != nil {
		t.Errorf("%d of %d events were read: %v", len(events.got), events.want, events.ended)
	}
	for i, wait := range waits {
		if wait > most {
			t.Errorf("event %d was handled after %d bytes of other connections", i, wait)
		}
	}
	stop := &collector{want: 1, onArrival: func() { all.over = true }} // on the loop's thread
	goodPeer.Write([]byte("x"))
	exchange(context.Background(), good, stop, later)
	reading.Wait()
	if timedOut.ended != os.ErrDeadlineExceeded {
		t.Errorf("the silent connection ended with %v", timedOut.ended)
	}
}

// pour writes until the connection breaks.
func pour(to net.Conn) {
	for b := make([]byte, 1<<20); ; {
		if _, err := to.Write(b); err != nil {
			return
		}
	}
}

// Unread covers bytes that had to wait for another turn.
func TestUnreadOfALaterTurn(t *testing.T) {
	t.Parallel()
	l, ln := loop(t), listener(t)
	c, peer := pair(t, l, ln)
	first := time.Now()
	peer.Write(make([]byte, 3*receiveBuffer))
	h := &collector{want: 3 * receiveBuffer}
	c.Begin(h, later)
	c.Wait(context.Background())
	if last := h.at[len(h.at)-1]; len(h.at) < 3 || last.Kernel && last.Unread <= 0 {
		t.Errorf("%d reads, the last unread for %v, %v after the first byte", len(h.at), last.Unread, last.Sub(first))
	}
}
