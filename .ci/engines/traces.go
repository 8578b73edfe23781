package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"moontide/trace"
)

// row is a request of a check's trace.
type row = trace.Request

// traceBlock is the block size of the checks' traces, no multiple of a server's.
const traceBlock = 80

// newRow is a request without blocks.
func newRow(at float64, isl, osl int) row {
	return row{Timestamp: trace.Some(at), InputLength: isl, OutputLength: osl}
}

// fill appends new block ids until there are enough for the prompt, and returns the next id.
func fill(r *row, next uint64) uint64 {
	for len(r.HashIDs)*traceBlock < r.InputLength {
		r.HashIDs = append(r.HashIDs, next)
		next++
	}
	return next
}

// shared is a trace of n requests, every one of which begins as an earlier one does.
// gap is the time between arrivals in milliseconds.
func shared(n int, gap float64) (rows []row) {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	next := uint64(100)
	for i := range n {
		r := newRow(float64(i)*gap, 100+rng.IntN(500), 2+rng.IntN(20))
		if i > 0 {
			from := rows[rng.IntN(i)].HashIDs
			r.HashIDs = slices.Clone(from[:min(rng.IntN(len(from)+1), r.InputLength/traceBlock)])
		}
		next = fill(&r, next)
		rows = append(rows, r)
	}
	return rows
}

// equal is a trace of n requests of one length that share nothing.
func equal(n, isl, osl int, gap float64) (rows []row) {
	for i := range n {
		r := newRow(float64(i)*gap, isl, osl)
		fill(&r, uint64(i*1000))
		rows = append(rows, r)
	}
	return rows
}

// conversations are sessions of four turns, each of which begins with the turn before and
// follows it after 300 ms.
func conversations(sessions int) (rows []row) {
	for s := range sessions {
		var ids []uint64
		for turn := range 4 {
			ids = append(ids, uint64(s*1000+2*turn), uint64(s*1000+2*turn+1))
			r := newRow(float64(s)*50, len(ids)*traceBlock-13, 12)
			r.HashIDs, r.SessionID = slices.Clone(ids), fmt.Sprint("s", s)
			if turn > 0 {
				r.Delay = trace.Some(300.0)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// groups are requests of four groups, more than fit into the cache, in an order that evicts.
func groups() (rows []row) {
	for i, group := range []uint64{1, 2, 1, 3, 1, 4, 2, 1, 3, 2, 4, 1} {
		r := newRow(0, 1970, 9)
		for j := range uint64(24) {
			r.HashIDs = append(r.HashIDs, group*100+j)
		}
		fill(&r, uint64(1000+i))
		rows = append(rows, r)
	}
	return rows
}
