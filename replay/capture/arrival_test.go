package capture

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/trace/log"
)

// A request arrives when it comes, even if the proxy reads it later: here after the answer
// to another one of the same connection.
func TestArrivalBeforeRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux stamps what arrives")
	}
	sent := make(chan bool)
	server := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-sent
		io.WriteString(w, `{"choices":[{"text":"a"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	})
	c := capturing(t, server)

	// The kernel begins to stamp a moment after the proxy asks it to.
	const tries = 1000
	for range tries {
		postTwice(t, strings.TrimPrefix(c.url, "http://"), sent)
	}
	err, rows := c.stop(), c.rows.all
	if err != nil || len(rows) != 2*tries {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	slices.SortFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	late := 0
	for i := 0; i < len(rows); i += 2 {
		var first struct {
			Recorded log.Recorded `json:"recorded"`
		}
		if err := json.Unmarshal(rows[i].Extra, &first); err != nil {
			t.Fatal(err)
		}
		if rows[i+1].Timestamp.Value >= rows[i].Timestamp.Value+*first.Recorded.E2EL {
			late++
		}
	}
	if late == tries {
		t.Error("all second requests arrived after the answers to the first")
	}
}

// postTwice sends two requests at once, has them answered, and reads the answers.
func postTwice(t *testing.T, address string, sent chan<- bool) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, strings.Repeat("POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 14\r\n\r\n"+`{"prompt":"a"}`, 2))
	answers := bufio.NewReader(conn)
	for range 2 {
		sent <- true
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, answer.Body)
	}
}
