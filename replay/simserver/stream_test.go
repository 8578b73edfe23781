package simserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// openStream submits a request for osl tokens and returns the body of its
// answer.
func openStream(s *Server, api *api, osl int) *eventStream {
	r := &request{prompt: promptOf(s.engine, 1, 2, 3), sampling: Sampling{MaxTokens: osl, IgnoreEOS: true}}
	a := &answer{
		api: api, timeline: s.submit(r), seed: r.prompt.hash(),
		id: api.idPrefix + "1", model: s.model, includeUsage: true,
	}
	a.startStream()
	return &eventStream{server: s, answer: a, timer: newStoppedTimer()}
}

// tokenEvents counts the events with a token in them.
func tokenEvents(b []byte) int {
	n := 0
	for event := range bytes.SplitSeq(b, []byte("\n\n")) {
		if bytes.Contains(event, []byte(`"content":" `)) || bytes.Contains(event, []byte(`"text":" `)) {
			n++
		}
	}
	return n
}

func TestStreamKeepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{PrefillPerToken: time.Second, DecodeStep: 7 * time.Second})
		stream := openStream(s, &chatAPI, 10)
		defer stream.Close()
		p := make([]byte, 4096)
		read := func(wantAt time.Duration, wantTokens int) {
			t.Helper()
			n, err := stream.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := tokenEvents(p[:n]); got != wantTokens || s.now() != wantAt {
				t.Errorf("%d tokens at %v, want %d at %v", got, s.now(), wantTokens, wantAt)
			}
		}
		read(3*time.Second, 1)
		read(10*time.Second, 1)
		read(17*time.Second, 1)
		// A writer that is held up gets all that is due at once, and the times
		// of what follows are as if it had not been.
		time.Sleep(17 * time.Second)
		read(34*time.Second, 2)
		read(38*time.Second, 1)
		time.Sleep(time.Hour)
		read(38*time.Second+time.Hour, 4)
		if n, err := stream.Read(p); n != 0 || err != io.EOF {
			t.Errorf("after the end: %d bytes, %v", n, err)
		}
	})
}

func TestStreamIsTheSameInAnyBuffer(t *testing.T) {
	for _, api := range []*api{&chatAPI, &completionAPI} {
		var whole []byte
		for _, size := range []int{1 << 20, 1, 7, 100, 300, 512, 4096} {
			s := New(Config{})
			stream := openStream(s, api, 50)
			var got []byte
			p := make([]byte, size)
			for {
				n, err := stream.Read(p)
				got = append(got, p[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if size >= 4096 && !bytes.HasSuffix(p[:n], []byte("\n\n")) {
					t.Errorf("%s: a buffer of %d bytes holds a torn event", api.object, size)
				}
			}
			if whole == nil {
				whole = got
			}
			if !bytes.Equal(got, whole) {
				t.Errorf("%s: with a buffer of %d bytes the stream is another", api.object, size)
			}
			if n := tokenEvents(got); n != 50 {
				t.Errorf("%s: %d token events, want 50", api.object, n)
			}
		}
	}
}

func TestStreamFreesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{DecodeStep: time.Second})
		check := func(when string, running, finished, aborted int) {
			t.Helper()
			got := s.stats()
			if got.Running != running || got.Finished[FinishLength] != finished || got.Finished[FinishAbort] != aborted {
				t.Errorf("%s: %+v, want %d running, %d finished, %d aborted", when, got, running, finished, aborted)
			}
		}
		ends, leaves := openStream(s, &completionAPI, 3), openStream(s, &completionAPI, 3)
		check("both open", 2, 0, 0)
		if err := leaves.Close(); err != nil {
			t.Error(err)
		}
		check("one left early", 1, 0, 1)
		p := make([]byte, 4096)
		for range 3 {
			if _, err := ends.Read(p); err != nil {
				t.Fatal(err)
			}
		}
		check("the other has been read", 0, 1, 1)
		if err := ends.Close(); err != nil {
			t.Error(err)
		}
		check("and closed", 0, 1, 1)
	})
}

func TestShutdownEndsWaitingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{PrefillPerToken: time.Hour})
		stream := openStream(s, &chatAPI, 1)
		go func() {
			time.Sleep(time.Second)
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		if n, err := stream.Read(make([]byte, 4096)); n != 0 || !errors.Is(err, errShutdown) || s.now() != time.Second {
			t.Errorf("Read gave %d bytes and %v at %v, want %v at 1s", n, err, s.now(), errShutdown)
		}
		synctest.Wait()
		// Nor does a stream go on whose events are all due.
		if n, err := openStream(New(Config{}), &chatAPI, 1).Read(make([]byte, 4096)); n == 0 || err != nil {
			t.Errorf("another server's stream: %d bytes, %v", n, err)
		}
		time.Sleep(100 * time.Hour)
		if n, err := stream.Read(make([]byte, 4096)); n != 0 || !errors.Is(err, errShutdown) {
			t.Errorf("Read after Shutdown gave %d bytes and %v", n, err)
		}
	})
}

func TestWordsAreDistinctAndPlain(t *testing.T) {
	seen := make(map[string]bool)
	for _, w := range words {
		if seen[w] || w[0] != ' ' || len(strings.Fields(w)) != 1 || strings.Trim(w[1:], "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q is not a new word of lower-case letters with a leading space", w)
		}
		seen[w] = true
	}
	a := answer{seed: 5}
	if a.word(0) == a.word(1) || a.word(3) != a.word(3+len(words)) {
		t.Error("the words of an answer do not go round")
	}
}

func TestEventsDoNotAllocate(t *testing.T) {
	s := New(Config{})
	stream := openStream(s, &chatAPI, 1_000_000)
	p := make([]byte, 4096)
	allocs := testing.AllocsPerRun(100, func() {
		if n, err := stream.Read(p); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a Read", allocs)
	}
}

func BenchmarkEvent(b *testing.B) {
	for _, api := range []*api{&chatAPI, &completionAPI} {
		for _, size := range []int{512, 4096} {
			b.Run(fmt.Sprintf("object=%s/buffer=%d", api.chunkObject, size), func(b *testing.B) {
				stream := openStream(New(Config{MaxModelLen: 1 << 40}), api, b.N+1)
				p := make([]byte, size)
				b.ReportAllocs()
				for stream.sent < b.N {
					if _, err := stream.Read(p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
