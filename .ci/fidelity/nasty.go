package main

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/stats"
)

// inOrder sorts rows by time.
func inOrder(rows []trace.Request) []trace.Request {
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	return rows
}

// compacted draws agents whose prompts grow to 60,000 tokens and are then replaced by
// their system prompt and a summary.
func compacted() []trace.Request {
	const limit = 60_000
	random := stats.NewStream(0, "compacted")
	var d drawn
	system := d.fresh(8)
	for t := 0.0; t < 2*hour; t += random.ExpFloat64() * 30 * second {
		isl := len(system)*blockSize + length(random, 2000)
		ids := slices.Clone(system)
		for at := t; at < 2*hour; {
			ids = append(ids, d.fresh(isl/blockSize-len(ids))...)
			osl := length(random, 300)
			d.rows = append(d.rows, trace.Request{Timestamp: trace.Some(math.Round(at)), InputLength: isl, OutputLength: osl, HashIDs: ids})
			if random.Float64() < .02 {
				break
			}
			at += trace.AnswerTime(osl) + lognormal(random, 10*second, 1.5)
			ids = slices.Clone(ids)
			if isl += osl + length(random, 1500); isl > limit {
				ids = slices.Clone(system)
				isl = len(system)*blockSize + length(random, 4000)
			}
		}
	}
	return inOrder(d.rows)
}

// retried draws chat with an outage of three minutes, in which every request is sent
// again after 1, 2, 4, ... seconds until the outage ends.
func retried() (all []trace.Request) {
	for _, r := range draw("retried", chat(hour)) {
		all = append(all, r)
		const begin, end = 30 * minute, 33 * minute
		at := r.Timestamp.Value
		for wait := second; at >= begin && at < end; wait *= 2 {
			at += wait
			r.Timestamp = trace.Some(at)
			all = append(all, r)
		}
	}
	return inOrder(all)
}

// evaluated draws chat, and every ten minutes a new set of 20 documents, each of which
// is asked 30 questions at once that come in any order within half a minute.
func evaluated() []trace.Request {
	all := draw("evaluated", chat(hour))
	random := stats.NewStream(0, "evaluated documents")
	d := drawn{ids: 1 << 32}
	for begin := 5 * minute; begin < hour; begin += 10 * minute {
		for range 20 {
			document := d.fresh(10 + int(random.Float64()*80))
			for range 30 {
				ids := append(slices.Clone(document), d.fresh(1)...)
				all = append(all, trace.Request{
					Timestamp:   trace.Some(math.Round(begin + random.Float64()*minute/2)),
					InputLength: len(document)*blockSize + 100 + int(random.Float64()*300), OutputLength: length(random, 15), HashIDs: ids,
				})
			}
		}
	}
	return inOrder(all)
}
