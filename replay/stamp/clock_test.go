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

	"pgregory.net/rapid"
)

// clocks simulates the wall clock and the monotonic clock of a time.Time.
type clocks struct {
	now time.Time // with the correct monotonic time
	set time.Duration
	// between is the interruption between the two readings of the next look.
	between time.Duration
	looks   int
}

// look returns a reading whose wall clock is off by c.set.
func (c *clocks) look() reading {
	c.looks++
	torn := c.between
	c.between = 0
	return reading{c.now, c.now.UnixNano() + int64(c.set+torn)}
}

func TestClock(t *testing.T) {
	t.Parallel()
	const us, ms = time.Microsecond, time.Millisecond
	start := time.Now()
	c := &clocks{now: start}
	under := newClock(c.look)
	expect := func(name string, ago, wantAgo time.Duration, kernel bool) {
		t.Helper()
		stamp := c.now.Add(-ago).UnixNano() + int64(c.set)
		at, delay, ok := under.Arrival(stamp)
		if got := c.now.Sub(at); got != wantAgo || ok != kernel || kernel && delay != wantAgo || !kernel && delay != 0 {
			t.Errorf("%s: %v ago, kernel %t, delay %v, want %v ago, kernel %t", name, got, ok, delay, wantAgo, kernel)
		}
	}
	pass := func(d time.Duration) { c.now = c.now.Add(d) }

	expect("just now", 0, 0, true)
	expect("a while ago", 3*ms, 3*ms, true)
	expect("from a processor that is ahead", -5*us, 0, true)
	expect("from the future", -ms, 0, false)
	expect("of another clock", 11*time.Minute, 0, false)
	pass(time.Hour)
	expect("an hour later", 40*ms, 40*ms, true)
	if at, delay, kernel := under.Arrival(0); kernel || delay != 0 || !at.Equal(c.now) {
		t.Errorf("no stamp: %v, %v", at, delay)
	}

	c.between = 3 * ms // interrupted between the two readings
	looks := c.looks
	expect("while interrupted", 2*ms, 2*ms, true)
	if c.looks != looks+2 {
		t.Errorf("%d looks, want a second one", c.looks-looks)
	}

	for _, by := range []time.Duration{-time.Hour, 25 * us, time.Hour} {
		c.set += by
		expect("right behind the setting", ms, 0, false)
		pass(distrustTime - 1)
		expect("in doubt", ms, 0, false)
		pass(1)
		expect("no more in doubt", ms, ms, true)
	}
}

// An interrupted first reading is discarded.
func TestClockBegins(t *testing.T) {
	t.Parallel()
	c := &clocks{now: time.Now(), between: 5 * time.Millisecond}
	under := newClock(c.look)
	if _, delay, kernel := under.Arrival(c.now.Add(-time.Millisecond).UnixNano()); !kernel || delay != time.Millisecond {
		t.Errorf("kernel %t, delay %v", kernel, delay)
	}
}

// However the wall clock is set, no instant is wrong by more than the delay of the
// read. Kernel instants are exact unless the wall clock is set.
func TestClockNeverLies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &clocks{now: time.Now()}
		under := newClock(c.look)
		for range rapid.IntRange(1, 30).Draw(t, "reads") {
			c.now = c.now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "pass")))
			late := time.Duration(rapid.Int64Range(0, int64(900*time.Millisecond)).Draw(t, "late"))
			stamp := c.now.UnixNano() + int64(c.set)
			truth := c.now
			c.now = c.now.Add(late)
			if rapid.IntRange(0, 3).Draw(t, "set") == 0 { // between arrival and read
				c.set += time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "by"))
			}
			at, _, kernel := under.Arrival(stamp)
			if kernel && at.Sub(truth).Abs() > 2*clockTolerance { // both clocks may be off by the tolerance
				t.Fatalf("the kernel's instant is off by %v", at.Sub(truth))
			}
			if !kernel && !at.Equal(c.now) {
				t.Fatalf("the instant is neither the kernel's nor that of the read")
			}
		}
	})
}

// pair returns both ends of a connection; the second has receive timestamps.
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

// Reads fail with the same errors as on other connections.
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
