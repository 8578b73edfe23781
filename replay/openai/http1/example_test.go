package http1_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
)

// printer prints what arrives.
type printer struct{}

func (printer) Head(h *http1.Head) http1.Action {
	fmt.Println(h.Status, h.ContentType)
	return http1.Read
}

func (printer) Body(b []byte, at poll.Arrival) http1.Action {
	fmt.Printf("%s %t\n", b, at.After(start))
	return http1.Read
}

func (printer) End(err error) { fmt.Println(err) }

var start = time.Now()

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "high tide")
	}))
	defer server.Close()
	host := http1.Host{Address: server.Listener.Addr().String()}
	defer host.Close()
	ctx, deadline := context.Background(), time.Now().Add(time.Minute)
	conn, err := host.Conn(ctx, deadline)
	if err != nil {
		fmt.Println(err)
		return
	}
	response := http1.Response{Sink: printer{}, Deadline: deadline}
	conn.Begin(&response, []byte("GET / HTTP/1.1\r\nHost: tide\r\n\r\n"))
	_, err = conn.Wait(ctx)
	fmt.Println(err, response.Reusable)
	host.Put(conn)
	// Output:
	// 200 text/plain
	// high tide true
	// EOF
	// <nil> true
}
