//go:build linux

package poll

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
)

// BenchmarkExchange measures one request with a one-byte answer.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{100, 512 << 10} {
		b.Run(fmt.Sprintf("request=%d", size), func(b *testing.B) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer ln.Close()
			l, err := New()
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			c, peer, err := connect(l, ln)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			go func() {
				defer peer.Close()
				request := make([]byte, size)
				for {
					if _, err := io.ReadFull(peer, request); err != nil {
						return
					}
					peer.Write(request[:1])
				}
			}()
			request := make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				h := &collector{want: 1}
				if exchange(context.Background(), c, h, later, request); h.ended != nil {
					b.Fatal(h.ended)
				}
			}
		})
	}
}
