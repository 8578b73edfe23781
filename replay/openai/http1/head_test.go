package http1

import (
	"errors"
	"strings"
	"testing"

	"moontide/replay/openai/poll"
)

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

// A server may send interim responses while a request waits, for a long time.
func TestManyInterimHeads(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 2000) + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntide"
	for _, size := range []int{1, 27, 100, 5000} {
		var got collector
		r := Response{Sink: &got}
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			r.Feed(rest[:min(size, len(rest))], poll.Arrival{})
		}
		if got.body != "tide" || got.head.Status != 200 || !r.Reusable {
			t.Errorf("pieces of %d: %+v", size, got)
		}
	}
}

// The target of a redirect is in its head, that of other responses is not.
func TestLocation(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{"308 Moved": "http://there", "302 Found": "http://there", "200 OK": "", "404 No": ""} {
		h, _, err := parseHead([]byte("HTTP/1.1 " + status + "\r\nLocation: http://there\r\nContent-Length: 0\r\n\r\n"))
		if err != nil || h.Location != want {
			t.Errorf("%s: %q, %v", status, h.Location, err)
		}
	}
}
