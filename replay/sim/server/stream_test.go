package server

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay/monotonic"
	"moontide/replay/sim/engine"
)

// newServer returns a server with one engine. Tests may fake its clock.
func newServer(t testing.TB, cfg engine.Config) *Server {
	t.Helper()
	return serverOf(t, Config{Deployment: engine.Deployment{Engine: cfg}})
}

func serverOf(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.newTimer = monotonic.NewGoTimer
	t.Cleanup(s.stopLoop)
	return s
}

// activeOf returns a request for osl tokens.
func activeOf(s *Server, api *api, osl int, c net.Conn) *activeRequest {
	r := &request{prompt: engine.NewPrompt(s.cluster.BlockSize()), length: lengthLimits{maxTokens: osl, ignoreEOS: true}}
	r.prompt.AddText("a b c")
	f := s.newActive(r, answer{api: api, id: "1", model: s.model, includeUsage: true}, newConn(c), time.Now())
	f.streamed = true
	return f
}

// openedStream is a stream in flight without HTTP around it.
type openedStream struct {
	*activeRequest
	net.Conn // the client's end
	ended    chan error
}

func openStream(t testing.TB, s *Server, api *api, osl int) *openedStream {
	t.Helper()
	client, server := net.Pipe()
	o := &openedStream{activeOf(s, api, osl, server), client, make(chan error, 1)}
	go func() {
		_, err := eventStream{s, o.activeRequest}.WriteTo(nil)
		o.ended <- err
	}()
	return o
}

// tokenEvents counts the events with a token in them.
func tokenEvents(b []byte) int {
	return bytes.Count(b, []byte(`"content":" `)) + bytes.Count(b, []byte(`"text":" `))
}

// read expects so many tokens in one chunk at a time of the server.
func (o *openedStream) read(t *testing.T, s *Server, at time.Duration, tokens int) {
	t.Helper()
	p := make([]byte, 1<<20)
	n, err := o.Read(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := tokenEvents(p[:n]); got != tokens || s.now() != at {
		t.Errorf("%d tokens at %v, want %d at %v", got, s.now(), tokens, at)
	}
	size, rest, _ := strings.Cut(string(p[:n]), "\r\n")
	if want, err := strconv.ParseInt(size, 16, 64); err != nil || int(want) != len(strings.TrimSuffix(rest, bodyEnd))-len("\r\n") {
		t.Errorf("not one chunk: %q", p[:n])
	}
}

func TestStreamKeepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{Costs: engine.Costs{PrefillToken: engine.Second, Sequence: 7 * engine.Second}})
		stream := openStream(t, s, &chatAPI, 9)
		stream.read(t, s, 3*time.Second, 1)
		stream.read(t, s, 10*time.Second, 1)
		stream.read(t, s, 17*time.Second, 1)
		// A blocked client does not block others: it finds the tokens generated
		// meanwhile, and the times of later tokens are not affected.
		time.Sleep(17 * time.Second)
		stream.read(t, s, 34*time.Second, 1) // on its way at 24 s
		stream.read(t, s, 34*time.Second, 1)
		stream.read(t, s, 38*time.Second, 1)
		time.Sleep(15 * time.Second)
		stream.read(t, s, 53*time.Second, 1)
		stream.read(t, s, 53*time.Second, 1)
		stream.read(t, s, 59*time.Second, 1)
		if err := <-stream.ended; err != nil || s.now() != 59*time.Second {
			t.Errorf("the stream ended at %v: %v", s.now(), err)
		}
		synctest.Wait()
	})
}

// A client that reads nothing for too long is cut off.
func TestClientThatReadsNothingIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{Costs: engine.Costs{Sequence: engine.Second}})
		stream := openStream(t, s, &chatAPI, 1000)
		if err := <-stream.ended; !errors.Is(err, errGone) || s.now() != rest+slowestWrite {
			t.Errorf("%v at %v, want %v at %v", err, s.now(), errGone, rest+slowestWrite)
		}
		if got := s.total(); got.Running+got.Waiting != 0 {
			t.Errorf("%+v", got)
		}
		synctest.Wait()
	})
}

// A slow client is not cut off.
func TestClientThatReadsSlowlyIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{})
		const osl = 5000 // some 800 kB, all there at once
		stream := openStream(t, s, &chatAPI, osl)
		var all []byte
		for p := make([]byte, slowPiece/16); ; time.Sleep(time.Second) {
			n, err := stream.Read(p)
			all = append(all, p[:n]...)
			if err != nil {
				t.Fatalf("after %d bytes and %v: %v", len(all), s.now(), err)
			}
			if bytes.HasSuffix(all, []byte("[DONE]\n\n\r\n"+bodyEnd)) {
				break
			}
		}
		if err := <-stream.ended; err != nil || tokenEvents(all) != osl || s.now() < 20*slowestWrite {
			t.Errorf("%d tokens by %v: %v", tokenEvents(all), s.now(), err)
		}
		synctest.Wait()
	})
}

// What a client sends during a stream is its next request and does not end the stream.
func TestClientMaySendItsNextRequest(t *testing.T) {
	for _, size := range []int{1, 100, maxEarly, 3 * maxEarly} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, engine.Config{Costs: engine.Costs{Sequence: engine.Second}})
			stream := openStream(t, s, &completionAPI, 2)
			next := bytes.Repeat([]byte("next request "), size)[:size]
			go stream.Write(next)
			stream.read(t, s, rest, 1)
			stream.read(t, s, time.Second, 1)
			if err := <-stream.ended; err != nil {
				t.Fatal(err)
			}
			got := make([]byte, size)
			for n := 0; n < size; {
				m, err := stream.conn.Read(got[n:])
				if err != nil {
					t.Fatalf("after %d of %d bytes: %v", n, size, err)
				}
				n += m
			}
			if !bytes.Equal(got, next) {
				t.Errorf("%d bytes come out as others", size)
			}
		})
	}
}

func TestWordsAreDistinctAndPlain(t *testing.T) {
	seen := make(map[string]bool)
	for _, w := range words {
		if seen[w] || w[0] != ' ' || len(strings.Fields(w)) != 1 || strings.Trim(w[1:], "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q is not a new word of lower-case letters with a leading space", w)
		}
		seen[w] = true
	}
	a := answer{wording: plainWords.wording(5, 0)}
	if a.word(0) == a.word(1) || a.word(3) != a.word(3+len(words)) {
		t.Error("the words of an answer do not go round")
	}
}

// sunk returns streams whose clients take everything at once.
func sunk(t testing.TB, s *Server, streams int) []engine.Event {
	t.Helper()
	// Datagrams that nobody reads are dropped.
	deaf, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	null, err := net.Dial("udp", deaf.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	fd := newConn(null).fd
	var events []engine.Event
	for range streams {
		f := activeOf(s, &chatAPI, 1<<28, &net.TCPConn{})
		f.conn.fd = fd
		events = append(events, engine.Event{Request: &f.Request, Kind: engine.Token})
	}
	return events
}

func TestEventsDoNotAllocate(t *testing.T) {
	s := newServer(t, engine.Config{MaxModelLen: 1 << 30})
	events := sunk(t, s, 10)
	if allocs := testing.AllocsPerRun(100, func() { s.deliverAll(events) }); allocs != 0 {
		t.Errorf("%v allocations for %d events", allocs, len(events))
	}
}
