package replay_test

import (
	"context"
	"fmt"
	"time"

	"moontide/replay"
	"moontide/trace"
)

// echo is a Client and its own Call: every answer is one token, at once.
type echo struct{}

func (echo) Prepare(trace.Request, int) (replay.Call, error) { return echo{}, nil }

func (echo) Send(context.Context) replay.Outcome {
	now := time.Now()
	return replay.Outcome{Sent: now, First: now, Last: now, Done: now}
}

// Replay three requests with a Client of your own. Package openai has one for
// HTTP endpoints, package runfile a Recorder that writes to disk.
func Example() {
	requests := []trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 100, OutputLength: 1},
		{Timestamp: trace.Some(10.0), InputLength: 200, OutputLength: 1},
		{Timestamp: trace.Some(20.0), InputLength: 300, OutputLength: 1},
	}
	runner := replay.Runner{Client: echo{}, MaxConcurrency: 2}
	tally, err := runner.Run(context.Background(), trace.FromSlice(requests))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d sent, %d failed\n", tally.Sent, tally.Failed)
	// Output: 3 sent, 0 failed
}
