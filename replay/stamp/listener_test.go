package stamp

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pair returns both ends of a connection, of which the second knows when bytes arrive.
func pair(t *testing.T) (client *net.TCPConn, server *Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = Listen(l)
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	return dialed.(*net.TCPConn), accepted.(*Conn)
}

// Bytes arrive when they are sent, not when they are read.
func TestArrived(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux stamps")
	}
	client, server := pair(t)
	for tries := 0; server.last.Load() == 0; tries++ { // the kernel begins a moment after it is asked
		if tries > 100_000 {
			t.Fatal("the kernel passes no stamps on")
		}
		client.Write([]byte{0})
		server.Read(make([]byte, 1))
	}
	for _, text := range []string{"a", "bc", strings.Repeat("d", 5000)} {
		before := time.Now()
		io.WriteString(client, text)
		sent := time.Now()
		for time.Since(sent) < 2*time.Millisecond { // far longer than clocks may differ by
		}
		b := make([]byte, len(text))
		if _, err := io.ReadFull(server, b); err != nil || string(b) != text {
			t.Fatalf("read %.10q, %v", b, err)
		}
		if at := server.Arrived(); at.Before(before.Add(-clockTolerance)) || at.After(sent.Add(time.Millisecond)) {
			t.Errorf("%d bytes arrived %v after they were sent, within %v", len(text), at.Sub(before), sent.Sub(before))
		}
	}
}

// Reads end as those of other connections do.
func TestReadErrors(t *testing.T) {
	client, server := pair(t)
	if n, err := server.Read(nil); n != 0 || err != nil {
		t.Errorf("nothing: %d, %v", n, err)
	}
	b := make([]byte, 8)
	server.SetReadDeadline(time.Unix(1, 0))
	if _, err := server.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) || !isRead(err) {
		t.Errorf("after the deadline: %v", err)
	}
	server.SetReadDeadline(time.Time{})
	io.WriteString(client, "ab")
	if n, err := server.Read(b); n != 2 || err != nil {
		t.Errorf("after another deadline: %d, %v", n, err)
	}
	client.CloseWrite()
	if n, err := server.Read(b); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
	client, server = pair(t)
	client.SetLinger(0)
	client.Close()
	if _, err := server.Read(b); err == nil || err == io.EOF || !isRead(err) {
		t.Errorf("after a reset: %v", err)
	}
	server.Close()
	if _, err := server.Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after it was closed: %v", err)
	}
}

// isRead reports whether an error is what net/http takes for one of the network.
func isRead(err error) bool {
	var of *net.OpError
	return errors.As(err, &of) && of.Op == "read"
}

// Reads do not allocate.
func TestReadAllocates(t *testing.T) {
	client, server := pair(t)
	b := make([]byte, 1)
	if n := testing.AllocsPerRun(100, func() {
		client.Write(b)
		server.Read(b)
		server.Arrived()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
