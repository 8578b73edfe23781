package cluster

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are pipes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) { return <-p, nil }
func (pipes) Close() error                { return nil }
func (pipes) Addr() net.Addr              { return &net.TCPAddr{} }

// Strangers are shown out after a time, and the oldest of too many at once; a connection
// that has shown the token is not.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{Listener: make(pipes)}
		enter := func() (client net.Conn, g *guest) {
			client, server := net.Pipe()
			go func() { d.Listener.(pipes) <- server }()
			conn, err := d.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return client, conn.(*guest)
		}
		closed := func(client net.Conn) bool {
			client.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := client.Read(make([]byte, 1))
			return err == io.EOF
		}
		member, known := enter()
		known.known()
		first, _ := enter()
		second, _ := enter()
		for range maxStrangers - 2 {
			enter()
		}
		if closed(first) {
			t.Error("there is room for all strangers")
		}
		enter()
		if !closed(first) || closed(second) {
			t.Error("the first of too many stays, or the second does not")
		}
		time.Sleep(strangerTime)
		if !closed(second) || closed(member) {
			t.Error("a stranger stays, or a member does not")
		}
	})
}

// What another part says cannot look like a line of this one's.
func TestOneLine(t *testing.T) {
	l := newLeader(2, time.Time{}, Config{Timeout: time.Hour})
	for got, want := range map[string]string{
		oneLine("a\nb\x1b[31m\u202e\"ü\""):      `a\nb\x1b[31m\u202e"ü"`,
		short(strings.Repeat("a\n", 300)):       strings.Repeat(`a\n`, 150) + "...",
		short(strings.Repeat("a", 300)):         strings.Repeat("a", 300),
		short(strings.Repeat("a", 299) + "ü"):   strings.Repeat("a", 299) + "...",
		l.name(1):                               "part 1 of 2",
		difference(nil, []Fact{{Name: "fact"}}): "it has other facts",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
