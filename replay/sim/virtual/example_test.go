package virtual_test

import (
	"context"
	"fmt"

	"moontide/replay"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/virtual"
	"moontide/trace"
)

// printer prints the records of a replay.
type printer struct{}

func (printer) Record(r replay.Record) error {
	fmt.Printf("request %d: TTFT %v, %d tokens cached\n", r.Row, r.First.Value-r.Sent.Value, r.Counts.Cached.Value)
	return nil
}

func Example() {
	e, err := virtual.New(virtual.Config{Deployment: engine.Deployment{
		Engine: engine.Config{Costs: engine.Costs{PrefillToken: 50 * engine.Microsecond}},
	}})
	if err != nil {
		panic(err)
	}
	runner := replay.VirtualRunner{Model: e, Recorder: printer{}}
	_, err = runner.Run(context.Background(), trace.FromSlice([]trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 1000, OutputLength: 10, HashIDs: []uint64{1, 2}},
		{Timestamp: trace.Some(500.0), InputLength: 1000, OutputLength: 10, HashIDs: []uint64{1, 3}},
	}))
	if err != nil {
		panic(err)
	}
	// Output:
	// request 0: TTFT 50ms, 0 tokens cached
	// request 1: TTFT 24.4ms, 512 tokens cached
}
