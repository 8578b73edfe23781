package format

import (
	"fmt"

	"moontide/trace"
)

// TimedTrace makes rows those of vLLM's timed_trace: to be written as any
// others, they have a timestamp in seconds, the two lengths and hash_ids, and
// nothing else. vLLM makes its prompts of the ids, so that a row without any
// gives an empty prompt: it is an error, as is one without a timestamp.
//
// vLLM cuts the last block to the prompt's length. Where blockSize is known and
// a row has no id for its end, it gets one of its own; blockSize 0 leaves the
// ids as they are.
func TimedTrace(reqs trace.Requests, blockSize int) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		n := 0
		for r, err := range reqs {
			n++
			switch {
			case err != nil:
			case !r.Timestamp.Set && r.Delay.Set:
				err = fmt.Errorf("row %d has a delay and no timestamp, which vLLM needs: replay the trace, and convert the record of the run", n)
			case !r.Timestamp.Set:
				err = fmt.Errorf("row %d has no timestamp, which vLLM needs: --rate gives some", n)
			case r.InputLength > 0 && (r.HashIDs == nil || len(r.HashIDs) == 0 && blockSize == 0):
				err = fmt.Errorf("row %d has no block ids, of which vLLM makes the prompt: --block-ids gives some", n)
			}
			if err != nil {
				yield(trace.Request{}, err)
				return
			}
			timed := trace.Request{
				Timestamp:   trace.Some(r.Timestamp.Value / 1000),
				InputLength: r.InputLength, OutputLength: r.OutputLength,
				HashIDs: covered(r.HashIDs, r.InputLength, blockSize, n),
			}
			if !yield(timed, nil) {
				return
			}
		}
	}
}

// covered are ids with one of its own for each block that has none. n is the
// row's number.
func covered(ids []uint64, tokens, blockSize, n int) []uint64 {
	if ids == nil {
		ids = []uint64{}
	}
	if blockSize == 0 {
		return ids
	}
	for blocks := (tokens + blockSize - 1) / blockSize; len(ids) < blocks; {
		ids = append(ids[:len(ids):len(ids)], mix(mix(uint64(n), uint64(len(ids))), 0x7461696c)&maxID) // "tail"
	}
	return ids
}
