// Package check finds everything in a trace that would make a replay or an
// analysis of it wrong: unreadable rows, disordered or coarse timestamps, wrong
// units, inconsistent block ids, turns that contradict their session.
//
// [Run] makes one pass:
//
//	r, err := format.Open("trace.jsonl", format.Options{SkipBadRows: true})
//	if err != nil { ... }
//	defer r.Close()
//	report, err := check.Run(r, check.Options{})
//	if err != nil { ... } // reading failed
//	for _, f := range report.Findings {
//		fmt.Println(f.Severity, f.Kind, f.Count, f.Of, f.Message, f.Evidence)
//	}
//
// # Findings
//
// A [Finding] groups all irregularities of one [Kind], with their count and the
// first few examples. Its severity follows from what a replay would do:
//
//   - [Error]: the trace is unreadable, incomplete or contradicts itself, so that a
//     replay is impossible or does not reproduce it: arrivals out of order, an
//     empty prompt, block ids that share prefixes that differ;
//   - [Warning]: probably a mistake because it is unusual, such as a very high load,
//     or a limit of the recording to keep in mind when reading results;
//   - [Note]: worth knowing.
//
// A trace without findings has arrivals in order, in milliseconds from 0, prompts
// of ceil(ISL/B) or floor(ISL/B) blocks of B tokens, and block ids that each
// identify one prefix.
//
// # Limits
//
// A trace does not name its unit of time: [TimeUnit] follows from what a service can
// sustain, [DelayUnit] from how long people and tools take. Their evidence states the
// values. The block size is detected as by [block.SizeDetector]; if none fits all rows,
// the power of two that fits most rows is used, and the other rows are reported.
//
// # Cost
//
// Memory grows with the distinct blocks (13 to 57 B each), and if rows wait for others by
// 12 B a row: see [trace.GraphBuilder]. Rows of sessions and with request ids are sorted on
// disk. At most a million timestamps and delays are kept; longer traces get a
// [CheckedInPart] finding.
package check
