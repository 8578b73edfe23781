package main

import (
	"fmt"
	"math"
	"slices"

	"moontide/.ci/results"
	"moontide/trace"
	"moontide/trace/stats"
)

// inOrder sorts rows by time.
func inOrder(rows []trace.Request) []trace.Request {
	slices.SortStableFunc(rows, results.ByTime)
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
			at += trace.ResponseTime(osl) + lognormal(random, 10*second, 1.5)
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
	for _, r := range chat("1h") {
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
	all := chat("1h")
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

// batch draws conversations in which all turns have timestamp 0, in the order of a closed loop.
func batch() []trace.Request {
	all := chat("20m")
	for i := range all {
		all[i].Timestamp = trace.Some(0.0)
	}
	return all
}

// constant is a load test: the same prompt three times a second.
func constant() (all []trace.Request) {
	for i := range 500 {
		all = append(all, trace.Request{Timestamp: trace.Some(float64(i) * 333.333), InputLength: 1000, OutputLength: 64, HashIDs: []uint64{0, 1}})
	}
	return all
}

// documents draws prompts of a system prompt, three of 60 documents in any order, and a
// question.
func documents() []trace.Request {
	random := stats.NewStream(0, "documents")
	var d drawn
	system := d.fresh(2)
	sizes := make([]int, 60)
	for i := range sizes {
		sizes[i] = 1 + random.IntN(6)
	}
	known := map[string][]uint64{} // blocks of documents behind others
	popular := stats.NewZipf(len(sizes), 1)
	for t := 0.0; t < hour; t += random.ExpFloat64() * second {
		ids, key := slices.Clone(system), ""
		used := map[int]bool{}
		for len(used) < 3 {
			k := popular.At(random.Float64())
			if used[k] {
				continue
			}
			used[k] = true
			if key += fmt.Sprint(" ", k); known[key] == nil {
				known[key] = d.fresh(sizes[k])
			}
			ids = append(ids, known[key]...)
		}
		isl := len(ids)*blockSize + length(random, 60)
		ids = append(ids, d.fresh((isl+blockSize-1)/blockSize-len(ids))...)
		d.rows = append(d.rows, trace.Request{Timestamp: trace.Some(math.Round(t)), InputLength: isl, OutputLength: length(random, 150), HashIDs: ids})
	}
	return d.rows
}

// captured draws chat with whole seconds in steps of 3, as the capture of its replay at ten
// times the speed sees it: each request comes 0.3 to 2 ms after the one before.
func captured() []trace.Request {
	const step, speed = 3 * second, 10
	all := chat("1h")
	for i := range all {
		all[i].Timestamp = trace.Some(math.Floor(all[i].Timestamp.Value/step) * step / speed)
	}
	return inBursts(all, "captured gaps")
}

// herds draws chat whose requests wait for each other: most bursts have a few requests,
// some have 300.
func herds() []trace.Request {
	all := chat("1h")
	random := stats.NewStream(0, "herds")
	for i := 0; i < len(all); {
		size := int(min(math.Pow(1-random.Float64(), -1/1.2), 300)) // Pareto
		burst := all[i:min(i+size, len(all))]
		for k := range burst {
			burst[k].Timestamp = burst[len(burst)-1].Timestamp
		}
		i += len(burst)
	}
	return inBursts(all, "herds gaps")
}

// inBursts puts rows with the same time apart, by 0.3 to 2 ms each.
func inBursts(all []trace.Request, stream string) []trace.Request {
	random := stats.NewStream(0, stream)
	last := math.Inf(-1)
	for i := range all {
		last = max(all[i].Timestamp.Value, last+0.3+1.7*random.Float64())
		all[i].Timestamp = trace.Some(math.Round(last*1000) / 1000)
	}
	return all
}

// searched draws tree searches: each of the three best of nine steps is extended three
// times, six steps deep, as fast as the answers come.
func searched() []trace.Request {
	const beams, depth = 3, 6
	random := stats.NewStream(0, "searched")
	var d drawn
	head := d.fresh(6)
	type state struct {
		ids []uint64
		isl int
	}
	for t := 0.0; t < hour; t += random.ExpFloat64() * 60 * second {
		isl := len(head)*blockSize + length(random, 1500)
		first := append(slices.Clone(head), d.fresh((isl+blockSize-1)/blockSize-len(head))...)
		states := []state{{first, isl}}
		for at, step := t, 0; step < depth && at < hour; step++ {
			var next []state
			longest := 0
			for _, s := range states {
				for range beams {
					osl := length(random, 200)
					longest = max(longest, osl)
					d.rows = append(d.rows, trace.Request{Timestamp: trace.Some(math.Round(at + 5*random.Float64())), InputLength: s.isl, OutputLength: osl, HashIDs: s.ids})
					ids := slices.Clone(s.ids[:s.isl/blockSize])
					longer := s.isl + osl
					next = append(next, state{append(ids, d.fresh((longer+blockSize-1)/blockSize-len(ids))...), longer})
				}
			}
			random.Shuffle(len(next), func(i, k int) { next[i], next[k] = next[k], next[i] })
			states = next[:min(beams, len(next))]
			at += trace.ResponseTime(longest) + 300
		}
	}
	return inOrder(d.rows)
}
