// Package check says everything about a trace that a replay or an analysis of
// it could trip over: rows that cannot be read, time that runs backwards or on
// a coarse clock, times in the wrong unit, block ids that do not add up, turns
// that contradict their session.
//
// [Run] makes one pass:
//
//	r, err := trace.Open("trace.jsonl", trace.Options{SkipBadRows: true})
//	if err != nil { ... }
//	defer r.Close()
//	report, err := check.Run(r, check.Options{})
//	if err != nil { ... } // the file, not a row of it, could not be read
//	for _, f := range report.Findings {
//		fmt.Println(f.Severity, f.Kind, f.Count, f.Of, f.Says, f.Evidence)
//	}
//
// # What is a finding
//
// A [Finding] gathers all irregularities of one [Kind], with their number and
// the first few places. What it is worth depends on what a replay does with it:
//
//   - an [Error] makes a replay mean something else than the trace says, or
//     impossible: arrivals out of order, an empty prompt, ids that share what
//     was not shared;
//   - a [Warning] is most likely not what the trace's maker meant, or is a limit
//     of the recording that a result has to be read with;
//   - a [Note] is worth knowing.
//
// A trace with no finding is what the format describes: arrivals in
// milliseconds from 0 in order, prompts of ceil(ISL/B) or floor(ISL/B) blocks
// of B tokens, ids that each stand for one prefix.
//
// # What it cannot know
//
// Nothing in a trace names its unit of time, so [TimeInSeconds] and its likes
// go by what a service can do, and [DelayInSeconds] and its likes by how long
// people and tools take; they state the rate or the delays that gave them away.
// Between what is likely and what is impossible, [TimeMaybeSeconds] warns. A block
// size is found from the rows as [trace.BlockDetector] does. Where no size fits
// them all, powers of two are tried for one that fits most, so that the rows
// that break the rule can be named.
//
// # Cost
//
// Memory grows with the distinct blocks (some 20 to 60 B each), the distinct
// last blocks of prompts, the rows (some 30 B each) and the sessions; of the
// timestamps and delays at most a million are kept, which [CheckedInPart] says
// of a longer trace, and of the findings only the first few places.
package check
