package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"moontide/replay/sim/server"
)

// Start the simulated endpoint and query it.
func Example() {
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	s, _ := server.New(server.Config{Model: "tide"})
	go s.Serve(listener)
	defer s.Shutdown(context.Background())

	body := strings.NewReader(`{"model":"tide","prompt":"one two three","max_tokens":4}`)
	response, err := http.Post("http://"+listener.Addr().String()+"/v1/completions", "application/json", body)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	_, usage, _ := strings.Cut(string(text), `"usage":`)
	fmt.Println(response.Status, usage)
	// Output:
	// 200 OK {"prompt_tokens":3,"total_tokens":7,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":0}}}
}
