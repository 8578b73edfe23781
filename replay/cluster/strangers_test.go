package cluster

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Connections without the token make room for others: part 2 joins when there are as many
// as there can be.
func TestStrangersMakeRoom(t *testing.T) {
	c := Config{Number: 1, Of: 2, Dir: filepath.Join(t.TempDir(), "run"), OneMachine: true, Version: "1", Timeout: time.Minute}
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
		if first == nil {
			first = conn
		}
	}
	c.Number = 2
	other, err := Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the stranger that has waited longest reads %v", err)
	}
	other.Close(nil)
	lead.Close(nil)
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
