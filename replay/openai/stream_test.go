package openai

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1/http1test"
	"moontide/replay/openai/poll"
)

// scripted is a client whose connection is s.
func scripted(t *testing.T, s *http1test.Script, edits ...func(*Config)) *Client {
	c := readers[replay.ClientStamps](client(t, "http://localhost", edits...))
	c.servers[0].host.DialContext = func(context.Context, string, string) (net.Conn, error) { return s, nil }
	return c
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
		a := newFed()
		start := time.Now()
		for i, piece := range pieces {
			if a.stream.first.IsZero() != (i <= tc.reads) {
				t.Errorf("%s: after %d reads the first event was at %v", name, i, a.stream.first)
			}
			a.Feed([]byte(piece), poll.Arrival{Time: start.Add(time.Duration(i) * time.Second), Kernel: true})
		}
		if got := a.stream.first.Sub(start); got != time.Duration(tc.reads)*time.Second {
			t.Errorf("%s: it arrived with the read at %v, want %d s", name, got, tc.reads)
		}
	}
}

// A request that is canceled when its answer is complete has succeeded, but the
// deadline that cancels it may still be set: its connection is not reused. Otherwise
// it is, without a deadline.
func TestCanceledTooLate(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{true, false} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := &http1test.Script{Pieces: []string{streamed + inChunk(tide+theEnd), lastChunk}}
		s.OnRead = func(piece int) {
			if late && piece == 1 {
				cancel()
			}
		}
		c := scripted(t, s)
		wantOK(t, prepare(t, c, row).Send(ctx), 1)
		if idle := c.servers[0].host.Idle(); (idle == nil) != late {
			t.Errorf("canceled late: %v, idle connection %v", late, idle)
		}
		if !late && !s.Deadline().IsZero() {
			t.Errorf("idle connection with the deadline %v", s.Deadline())
		}
	}
}
