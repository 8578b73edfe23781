//go:build linux

package poll_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"moontide/replay/openai/poll"
)

// line is a Handler that reads one line.
type line struct{ text []byte }

func (l *line) Feed(b []byte, at poll.Arrival) bool {
	l.text = append(l.text, b...)
	return b[len(b)-1] == '\n'
}

func (l *line) End(err error, at poll.Arrival) { fmt.Println(err) }

func Example() {
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	defer listener.Close()
	loop, _ := poll.New()
	defer loop.Close()
	raw, _ := net.Dial("tcp", listener.Addr().String())
	conn, _ := loop.Adopt(raw)
	defer conn.Close()
	peer, _ := listener.Accept()
	fmt.Fprintln(peer, "high tide")

	var answer line
	conn.Begin(&answer, time.Now().Add(time.Minute), []byte("when?\n"))
	_, wrote, err := conn.Wait(context.Background())
	fmt.Printf("%s%v %v\n", answer.text, wrote, err)
	peer.Close()
	// Output:
	// high tide
	// true <nil>
}
