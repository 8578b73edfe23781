// Package trace is what a trace of an LLM serving workload is: a stream of
// [Request] values, one for each request that arrived.
//
// Start with [Open], which reads a file in the Mooncake JSON lines format
// (plain, gzip or zstd), and range over its requests:
//
//	r, err := trace.Open("conversation.jsonl.zst", trace.Options{})
//	if err != nil { ... }
//	defer r.Close()
//	for req, err := range r.Requests() {
//		if err != nil { ... } // file:line: what is wrong, with the value
//		fmt.Println(req.Timestamp.Value, req.InputLength)
//	}
//
// [Create] writes one. In between stand functions from a stream to a stream:
// [Window], [Take], [Sample] and [Shard] cut; [Speed], [Retime], [Ramp], [Spread],
// [AtOnce] and [Rebase] move arrivals; [Merge] and [Sort] order. They are lazy, hold no more than
// they say, never touch a block id and never round a time. A stream that they
// return can be ranged over as often as the stream it came from.
package trace
