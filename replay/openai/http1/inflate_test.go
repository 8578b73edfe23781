package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"go.uber.org/goleak"

	"moontide/replay/openai/poll"
)

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
