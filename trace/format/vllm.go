package format

import (
	"fmt"

	"moontide/trace"
)

// TimedTrace converts rows to vLLM's timed_trace: a timestamp in seconds, the two
// lengths and hash_ids. vLLM makes prompts from the ids, so a row without ids is
// an error, as is one without a timestamp.
//
// vLLM cuts the last block to the prompt's length. A row without an id for its
// last, partial block gets a unique one; blockSize 0 leaves the ids as they are.
func TimedTrace(reqs trace.Requests, blockSize int) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		n := 0
		for r, err := range reqs {
			n++
			switch {
			case err != nil:
			case !r.Timestamp.Set && r.Delay.Set:
				err = fmt.Errorf("row %d has a delay and no timestamp, which vLLM needs: replay the trace and convert the recorded run", n)
			case !r.Timestamp.Set:
				err = fmt.Errorf("row %d has no timestamp, which vLLM needs: set a rate to add arrivals", n)
			case r.InputLength > 0 && (r.HashIDs == nil || len(r.HashIDs) == 0 && blockSize == 0):
				err = fmt.Errorf("row %d has no block ids, from which vLLM makes the prompt: generate some when reading", n)
			}
			if err != nil {
				yield(trace.Request{}, err)
				return
			}
			timed := trace.Request{
				Timestamp:   trace.Some(r.Timestamp.Value / 1000),
				InputLength: r.InputLength, OutputLength: r.OutputLength,
				HashIDs: withTail(r.HashIDs, r.InputLength, blockSize, n),
			}
			if !yield(timed, nil) {
				return
			}
		}
	}
}

// withTail returns ids with a unique one for each block that has none. n is the row's
// number.
func withTail(ids []uint64, tokens, blockSize, n int) []uint64 {
	ids = append([]uint64{}, ids...) // those of the row are kept
	for blockSize > 0 && len(ids)*blockSize < tokens {
		ids = append(ids, mix(mix(uint64(n), uint64(len(ids))), 0x7461696c)&maxID) // "tail"
	}
	return ids
}
