// Package trace represents traces of LLM serving workloads: streams of [Request]
// values, one for each request that arrived.
//
// Read a trace with moontide/trace/format and range over its requests:
//
//	r, err := format.Open("conversation.jsonl.zst", format.Options{})
//	if err != nil { ... }
//	defer r.Close()
//	for req, err := range trace.Speed(r.Requests(), 2) {
//		if err != nil { ... } // file:line: what is wrong, with the value
//		fmt.Println(req.Timestamp.Value, req.InputLength)
//	}
//
// Most functions transform one stream into another. A [Pacing] selects rows and sets
// their arrivals: window, limit, arrival process, speed, ramp. [Take], [Sample] and [Part]
// select rows, [Sort] and [SendOrder] put them in order. They are lazy, pass errors on and
// never round a time. Their result can be ranged over as often as their input.
//
// [DetectGrid] finds the clock of coarse timestamps. Times are milliseconds, lengths are
// tokens.
package trace
