package bench_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"

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

// Measure an endpoint at two concurrencies.
func ExampleRunSweep() {
	url, stop := fastEndpoint()
	defer stop()
	dir, _ := os.MkdirTemp("", "sweep")
	defer os.RemoveAll(dir)
	runs, err := bench.RunSweep(context.Background(), bench.SweepConfig{
		Sweep: bench.Sweep{Axis: bench.Concurrency, Levels: []float64{1, 2}, Targets: []bench.Target{{URL: url}}},
		Trace: func(leg bench.Leg) (bench.Trace, error) {
			rows := make([]trace.Request, leg.Prompts)
			for i := range rows {
				rows[i] = trace.Request{Timestamp: trace.Some(0.0), InputLength: 100, OutputLength: 5}
			}
			return bench.Trace{Requests: trace.FromSlice(rows)}, nil
		},
		Dir: dir,
	})
	for _, r := range runs {
		fmt.Println(r.Leg, r.Metrics.Completed)
	}
	fmt.Println(err)
	// Output:
	// concurrency 1 10
	// concurrency 2 20
	// <nil>
}

// Simulate a trace in virtual time.
func ExampleRun_virtual() {
	result, err := bench.Run(context.Background(), bench.Config{
		Trace:   bench.Trace{Path: "../../traces/conversation.jsonl"},
		Virtual: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Metrics.Completed, result.Metrics.Verdict.Level)
	// Output: 153 VALID
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
