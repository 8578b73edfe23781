package cluster

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Connections without the token make room for others: part 2 joins when there are as many
// as there can be. Those that have sent half of a body are closed without the rest.
func TestStrangersMakeRoom(t *testing.T) {
	const half = "POST /v1/report HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\nContent-Length: 9\r\n\r\n{"
	for _, says := range []string{"", half} {
		strangersMakeRoom(t, says)
	}
}

func strangersMakeRoom(t *testing.T, says string) {
	c := Config{Number: 1, Of: 2, Dir: filepath.Join(t.TempDir(), "run"), OneMachine: true, Version: "1", Timeout: 10 * time.Second}
	lead, err := Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var first net.Conn
	for range lead.server.conns.Most {
		conn, err := net.Dial("tcp", lead.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, says)
		if first == nil {
			first = conn
		}
	}
	c.Number = 2
	other, err := Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	first.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, first); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the stranger that has waited longest reads %v", err)
	}
	other.Close(nil)
	lead.Close(nil)
}

// What another part says cannot look like a line of this one's.
func TestOneLine(t *testing.T) {
	l := newCoordinator(Config{Of: 2, Timeout: time.Hour}, time.Time{})
	for got, want := range map[string]string{
		oneLine("a\nb\x1b[31m\u202e\"ü\""):      `a\nb\x1b[31m\u202e"ü"`,
		short(strings.Repeat("a\n", 300)):       strings.Repeat(`a\n`, 100) + "...",
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

// The folder of a part is in that of the run, not what a link points to.
func TestPartIsNoLink(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "mine"), 0o755)
	os.WriteFile(filepath.Join(dir, "mine", "run.json"), []byte("mine"), 0o600)
	if err := os.Symlink("mine", filepath.Join(dir, "part-2")); err != nil {
		t.Skipf("cannot link: %v", err)
	}
	if storeFile(filepath.Join(dir, "part-2"), "run.json", strings.NewReader("new")) == nil {
		t.Error("no error")
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "mine", "run.json")); string(got) != "mine" {
		t.Errorf("the file is %q", got)
	}
}
