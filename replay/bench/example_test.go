package bench_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"moontide/replay/bench"
	"moontide/replay/openai"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/server"
	"moontide/trace"
)

// Replay a trace against an endpoint.
func ExampleRun() {
	url, stop := fastEndpoint()
	defer stop()
	result, err := bench.Run(context.Background(), bench.Config{
		Trace:  bench.Trace{Path: "../../traces/conversation.jsonl"},
		Pacing: trace.Pacing{Limit: 20, Speedup: 100},
		Client: openai.Config{URL: url, Model: "sim"},
		Salt:   "example",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Metrics.Completed, "completed,", result.Metrics.Failed, "failed")
	// Output: 20 completed, 0 failed
}

// fastEndpoint serves simulated engines that take no time.
func fastEndpoint() (url string, stop func()) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Run(ctx, ln, server.Config{Deployment: engine.Deployment{}})
	}()
	return "http://" + ln.Addr().String(), func() { cancel(); <-ended }
}
