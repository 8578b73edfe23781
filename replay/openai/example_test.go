package openai_test

import (
	"context"
	"fmt"
	"net"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/sim/server"
	"moontide/trace"
)

// Send one request to the simulated endpoint.
func Example() {
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	endpoint, _ := server.New(server.Config{})
	go endpoint.Serve(listener)
	defer endpoint.Shutdown(context.Background())

	client, _ := openai.New(openai.Config{URL: "http://" + listener.Addr().String()})
	defer client.Close()
	notes, err := client.Probe(context.Background())
	fmt.Println(client.Model(), notes, err)
	call, _ := client.Prepare(trace.Request{InputLength: 100, OutputLength: 8}, 0)
	o := call.Send(context.Background())
	fmt.Println(o.Class == replay.OK, o.Counts.Input.Value, o.Counts.Output.Value, len(o.Gaps))
	// Output:
	// sim [] <nil>
	// true 100 8 7
}
