package trace_test

import (
	"fmt"
	"time"

	"moontide/trace"
)

func Example() {
	rows := trace.FromSlice([]trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 1000, OutputLength: 50},
		{Timestamp: trace.Some(400.0), InputLength: 2000, OutputLength: 80},
		{Timestamp: trace.Some(9000.0), InputLength: 500, OutputLength: 20},
	})
	// The first five seconds, twice as fast.
	for req, err := range (trace.Pacing{End: 5 * time.Second, Speedup: 2}).Apply(rows) {
		if err != nil {
			panic(err)
		}
		fmt.Println(req.Timestamp.Value, req.InputLength, req.OutputLength)
	}
	// Output:
	// 0 1000 50
	// 200 2000 80
}
