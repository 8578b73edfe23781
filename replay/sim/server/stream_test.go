package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay/monotonic"
	"moontide/replay/openai/http1/http1test"
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
	t.Cleanup(func() {
		s.mu.Lock()
		timer := s.timer
		s.mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
	})
	return s
}

// activeOf returns a request for osl tokens.
func activeOf(s *Server, api *api, osl int, c net.Conn) *activeRequest {
	r := &request{prompt: engine.NewPrompt(s.cluster.BlockSize()), most: osl, ignoreEOS: true}
	r.prompt.AddText("a b c")
	f := s.newActive(r, response{api: api, id: "1", model: s.model, options: options{includeUsage: true}}, newConn(c), time.Now())
	f.streamed = true
	return f
}

// openedStream is a stream in flight without HTTP around it.
type openedStream struct {
	*activeRequest
	net.Conn // the client's end
	ended    chan error
}

func (o *openedStream) Read(p []byte) (int, error) { return o.Conn.Read(p) }

func openStream(t testing.TB, s *Server, api *api, osl int) *openedStream {
	t.Helper()
	client, server := net.Pipe()
	o := &openedStream{activeOf(s, api, osl, server), client, make(chan error, 1)}
	go func() {
		_, err := o.activeRequest.WriteTo(nil)
		o.ended <- err
	}()
	return o
}

// end waits for the end of the stream.
func (o *openedStream) end(t *testing.T) {
	t.Helper()
	if err := <-o.ended; err != nil {
		t.Fatal(err)
	}
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
		// A blocked client does not block others: it finds the tokens generated
		// meanwhile, and the times of later tokens are not affected.
		for _, at := range []time.Duration{3, 10, 17, 34, 34, 38, 53, 53, 59} { // the first of 34 was on its way at 24
			stream.read(t, s, at*time.Second, 1)
			time.Sleep(map[time.Duration]time.Duration{17: 17, 38: 15}[at] * time.Second)
		}
		if err := <-stream.ended; err != nil || s.now() != 59*time.Second {
			t.Errorf("the stream ended at %v: %v", s.now(), err)
		}
		synctest.Wait()
		last := s.round
		time.Sleep(time.Hour)
		if synctest.Wait(); s.round != last {
			t.Errorf("the loop ran at %v with nothing to do", s.round)
		}
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
		if got := s.stats()[0]; got.Running+got.Waiting != 0 {
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
			stream.end(t)
			got := make([]byte, size)
			if n, err := io.ReadFull(stream.conn, got); err != nil || !bytes.Equal(got, next) {
				t.Errorf("%d of %d bytes, %v: %q", n, size, err, got)
			}
		})
	}
}

func TestWordsAreDistinctAndPlain(t *testing.T) {
	l := lexiconOf(wordTokens)
	if len(l.words) != len(words) || strings.Trim(strings.Join(words, ""), "abcdefghijklmnopqrstuvwxyz") != "" {
		t.Errorf("%d of %d words are distinct and of lower-case letters", len(l.words), len(words))
	}
	a := response{wording: wording{l, 5, math.MaxInt}}
	if a.word(0) == a.word(1) || a.word(3) != a.word(3+len(words)) {
		t.Error("the words of a response do not go round")
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
	var events []engine.Event
	for range streams {
		f := activeOf(s, &chatAPI, 1<<28, null)
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

// middle returns an answer of 1000 tokens whose stream has begun, and whose events have
// all members that may be asked for if all is true.
func middle(api *api, reasoning int, all bool) *response {
	a := &response{api: api, id: "0123456789abcdef0123456789abcdef", model: `"sim"`, wording: wording{lexiconOf(wordTokens), 7, math.MaxInt}, reasoning: reasoning,
		tokens: 1000, full: true, promptTokens: 1000, cachedTokens: 500, stamped: all}
	a.continuousUsage = all
	if !api.separatesReasoning() {
		a.reasoning = 0
	}
	a.appendToken(nil, 0)
	return a
}

func TestEncodingATokenDoesNotAllocate(t *testing.T) {
	for _, api := range apis {
		for _, reasoning := range []int{0, 999} {
			a, buf := middle(api, reasoning, true), make([]byte, 0, 64<<10)
			if allocs := testing.AllocsPerRun(100, func() {
				for k := 1; k < 999; k++ {
					buf = a.appendToken(buf[:0], k)
				}
			}); allocs != 0 {
				t.Errorf("%s: %v allocations for 998 tokens", api.name, allocs)
			}
		}
	}
}

// The end of the body is written once, together with the last token.
func TestBodyEndsWithItsLastToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{})
		stream := openStream(t, s, &completionAPI, 3)
		p := make([]byte, 1<<20)
		n, err := stream.Read(p)
		if err != nil || tokenEvents(p[:n]) != 3 || !bytes.HasSuffix(p[:n], []byte("[DONE]\n\n\r\n"+bodyEnd)) {
			t.Errorf("%v: %q", err, p[:n])
		}
		stream.end(t)
		// What the HTTP server writes after that, and in how many pieces.
		go func() {
			c := stream.activeRequest.conn
			c.Write([]byte("0\r\n"))
			c.Write([]byte("next"))
			c.Write([]byte("\r\n"))
			c.Close()
		}()
		if rest, _ := io.ReadAll(stream); string(rest) != "next\r\n" {
			t.Errorf("then comes %q", rest)
		}
	})
}

// The summary covers all tokens as written; its percentiles are exact, not bucket bounds.
func TestSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{Costs: engine.Costs{Sequence: 120 * engine.Millisecond}})
		for range 2 {
			stream := openStream(t, s, &completionAPI, 4)
			for range 4 {
				if _, err := stream.Read(make([]byte, 4096)); err != nil {
					t.Fatal(err)
				}
			}
			stream.end(t)
		}
		got := s.Summary()
		if got.Completed != 2 || got.Aborted != 0 || got.OutputTokens != 8 || got.TTFT.Count != 2 || got.ITL.Count != 6 || got.E2EL.Count != 2 {
			t.Errorf("counts of %+v", got)
		}
		for _, x := range []float64{got.ITL.MeanMS, got.ITL.MedianMS, got.ITL.P99MS, got.ITL.MaxMS, got.E2EL.MeanMS / 3} {
			if math.Abs(x-120) > 0.5 {
				t.Errorf("%v ms between tokens: %+v", x, got)
			}
		}
		if got.TTFT.MaxMS > 1 {
			t.Errorf("TTFT of %+v", got.TTFT)
		}
	})
}

// A loop that is late delivers several tokens in one write.
func TestTokensOfOneRoundAreOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{Costs: engine.Costs{Sequence: engine.CostOf(rest / 4)}})
		stream := openStream(t, s, &completionAPI, 9)
		stream.read(t, s, rest, 5)
		stream.read(t, s, 2*rest, 4)
		stream.end(t)
		if got := s.Summary().ITL; got.Count != 8 || got.MedianMS != 0 || math.Abs(got.MaxMS-0.2) > 0.001 {
			t.Errorf("gaps of %+v", got)
		}
	})
}

func TestParseFault(t *testing.T) {
	for text, want := range map[string]Fault{
		"reset":         {Kind: Reset, Share: 1},
		"RESET:0.01":    {Kind: Reset, Share: 0.01},
		"delay":         {Kind: Delay, Share: 1, Time: time.Second},
		"delay:0.5:2ms": {Kind: Delay, Share: 0.5, Time: 2 * time.Millisecond},
		"stall:1":       {Kind: Stall, Share: 1},
		"429:1:90s":     {Kind: TooMany, Share: 1, Time: 90 * time.Second},
	} {
		if got, err := ParseFault(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "crash", "reset:", "reset:0", "reset:1.1", "reset:NaN", "reset:x", "reset:1:2s", "delay:1:", "delay:1:0s", "delay:1:2h", "delay:1:5", "stall:1:2s:3"} {
		if got, err := ParseFault(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// The short cut for token ids does not change the members of a body, wherever they are and
// whatever looks like them.
func TestBodyAgreesWithTheLibrary(t *testing.T) {
	for _, body := range []string{
		`{"prompt":[1,2],"max_tokens":3}`, `{ "max_tokens" : 3 , "prompt" : [ 1 , 2 ] }`, `{"prompt":[1,2],"prompt":"text"}`,
		`{"prompt":"text","prompt":[1,2]}`, `{"x":{"prompt":[1,2]},"prompt":[3]}`, `{"x":{"prompt":[1,2]},"prompt":[]}`, `{"x":{"prompt":[1,2]}}`,
		`{"x":"prompt","y":[1,2],"prompt":[3]}`, `{"x":"\"prompt\":[1,2]","prompt":[3]}`, `{"x":"\\","prompt":[3]}`, `{"prompt":[1,"]"]}`,
		`{"prompt":[1,[2]]}`, `{"prompt":[[1,2]]}`, `{"prompt":["a"]}`, `{"prompt":[]}`, `{"prompt":"a"}`, `{"prompt":null}`, `{"prompt":[1`, `{"prompt":`,
		`{"prompt"`, `{"prompt":[1]`, `{"prompt":[1]}}`, `[{"prompt":[1]}]`, `"prompt":[1]`, `{}`,
	} {
		var decoded map[string]json.RawMessage
		err := json.Unmarshal([]byte(body), &decoded)
		got, refused := bodyOf([]byte(body), &completionAPI)
		same := func(a []byte, b json.RawMessage) bool { return string(a) == string(b) }
		if (refused == nil) != (err == nil) || err == nil && !maps.EqualFunc(got, decoded, same) {
			t.Errorf("%s: %v, want %v\n%q, want %q", body, refused, err, got, decoded)
		}
	}
}

// With a time scale of 2 everything takes half the time.
func TestTimeScale(t *testing.T) {
	for _, scale := range []float64{1, 2, 0.25, 1000} {
		synctest.Test(t, func(t *testing.T) {
			s := serverOf(t, Config{
				TimeScale:  scale,
				Deployment: engine.Deployment{Engine: engine.Config{Costs: engine.Costs{PrefillToken: engine.Second, Sequence: 8 * engine.Second}}},
			})
			stream := openStream(t, s, &chatAPI, 3)
			start := time.Now()
			for _, want := range []time.Duration{3 * time.Second, 11 * time.Second, 19 * time.Second} {
				stream.read(t, s, want, 1)
				if at := time.Since(start); at != time.Duration(float64(want)/scale) {
					t.Errorf("scale %v: a token at %v, want %v/%v", scale, at, want, scale)
				}
			}
			synctest.Wait()
		})
	}
}

// Equal seeds make the same requests fail. 30 % fail, and half of what is left is too many.
func TestFaultsAreSeeded(t *testing.T) {
	faults := []Fault{{Kind: Failure, Share: 0.3}, {Kind: TooMany, Share: 0.5}}
	fates := func(seed uint64) (fates [1000]string, counts map[string]int) {
		counts = map[string]int{}
		for n := range fates {
			fates[n] = drawFault(faults, faultRandom(seed, uint64(n))).Kind
			counts[fates[n]]++
		}
		return fates, counts
	}
	one, counts := fates(1)
	again, _ := fates(1)
	other, _ := fates(2)
	if one != again || one == other || counts[Failure] < 250 || counts[Failure] > 350 || counts[TooMany] < 300 || counts[TooMany] > 400 {
		t.Errorf("%v", counts)
	}
}

// Half a head is waited for 10 seconds, in a new connection and in one that had a request.
func TestHalfAHead(t *testing.T) {
	_ = new(fasthttp.ResponseHeader).String() // begins fasthttp's clock, which never ends
	for _, first := range []string{"", "GET /health HTTP/1.1\r\nHost: h\r\n\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, engine.Config{})
			clients := http1test.NewPipes()
			go s.Serve(clients)
			conn, _ := clients.Dial()
			in := bufio.NewReader(conn)
			if first != "" {
				io.WriteString(conn, first)
				http.ReadResponse(in, nil)
				time.Sleep(time.Minute) // it may be idle for longer
			}
			began := time.Now()
			io.WriteString(conn, "POST /v1/completions HTTP/1.1\r\nHost:")
			answer, _ := io.ReadAll(in)
			if waited := time.Since(began); waited != 10*time.Second || !bytes.Contains(answer, []byte("too long to arrive")) {
				t.Errorf("%v, want 10s: %s", waited, answer)
			}
			conn.Close()
			s.Shutdown(context.Background())
			time.Sleep(time.Minute) // until fasthttp's goroutines have ended
		})
	}
}
