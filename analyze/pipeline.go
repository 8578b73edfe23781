package analyze

import (
	"fmt"
	"math"

	"moontide/trace"
	"moontide/trace/block"
)

// Reading a trace and counting its blocks take about as long, so they run side
// by side: one goroutine reads rows and numbers their blocks, another follows
// what the numbers mean. Batches go from the first to the second and back.

const (
	// batchBlocks and batchRows are how full a batch is when it is passed on:
	// enough to make the passing cheap, and little enough for a processor's cache.
	batchBlocks = 32 << 10
	batchRows   = 1 << 10
	// batches is how many there are: one is filled, one counted, one waits.
	batches = 3
)

// batch is a stretch of requests.
type batch struct {
	requests []numbered
	numbers  []uint32 // of all their blocks
}

// numbered is a request whose blocks have numbers instead of ids.
type numbered struct {
	trace.Request        // without HashIDs
	blocks        int32  // how many of the batch's numbers are its own
	root          uint64 // id of the first block
}

// collect reads all requests.
func (c *collector) collect(reqs trace.Requests, watch func(trace.Request, []uint32)) error {
	full, empty := make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		empty <- &batch{}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := range full {
			c.count(b, watch)
			empty <- b
		}
	}()
	err := c.read(reqs, full, empty)
	close(full)
	<-done
	return err
}

// read numbers the blocks of all requests and passes these on.
func (c *collector) read(reqs trace.Requests, full chan<- *batch, empty <-chan *batch) error {
	b := <-empty
	rows := 0
	for r, err := range reqs {
		if err != nil {
			return err
		}
		if rows == maxRequests {
			return fmt.Errorf("more than %d requests", maxRequests)
		}
		c.detector.Add(r)
		c.declared.add(r)
		c.marks.add(&r)
		c.sessions.add(rows, r)
		rows++
		b.add(r, &c.table)
		if err := c.table.Err(); err != nil {
			return err
		}
		if len(b.numbers) >= batchBlocks || len(b.requests) >= batchRows {
			full <- b
			b = <-empty
		}
	}
	full <- b
	return nil
}

func (b *batch) add(r trace.Request, table *block.Table) {
	n := numbered{Request: r, blocks: int32(len(r.HashIDs))}
	if n.blocks > 0 {
		n.root = r.HashIDs[0]
	}
	n.HashIDs = nil
	b.numbers = table.AppendNumbers(b.numbers, r.HashIDs)
	b.requests = append(b.requests, n)
}

// count follows the requests of a batch and empties it.
func (c *collector) count(b *batch, watch func(trace.Request, []uint32)) {
	left := b.numbers
	for i := range b.requests {
		r := &b.requests[i]
		at := math.NaN()
		if r.Timestamp.Set {
			at = r.Timestamp.Value
		}
		c.rows = append(c.rows, row{
			at: at, isl: int32(r.InputLength), osl: int32(r.OutputLength),
			hasIDs: r.blocks > 0, runs: uint32(len(c.prefix.runs)),
		})
		numbers := left[:r.blocks:r.blocks]
		left = left[r.blocks:]
		c.prefix.add(c.rows, numbers, r.root)
		if watch != nil {
			watch(r.Request, numbers)
		}
	}
	b.requests, b.numbers = b.requests[:0], b.numbers[:0]
}
