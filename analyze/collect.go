package analyze

import (
	"fmt"
	"math"

	"moontide/trace"
	"moontide/trace/block"
)

// collector holds the data kept for each request until the last one is read. Two
// goroutines, which pass batches to and fro, fill it: reading rows and counting
// blocks take about equally long.
type collector struct {
	// Filled by the goroutine that reads and numbers blocks.
	table    block.Table
	detector block.SizeDetector
	declared declaredContext
	lengths  Lengths // of which only the marks are counted
	sessions sessionCounter
	// Filled by the goroutine that counts.
	rows   rows
	prefix prefixCounter
}

const (
	maxRequests = math.MaxInt32 // row numbers are int32

	// A batch is full at this size, which fits the CPU cache.
	batchBlocks = 32 << 10
	batchRows   = 1 << 10
	batches     = 3 // one being filled, one being counted, one waiting
)

type batch struct {
	requests []numbered
	numbers  []uint32 // of the blocks of all requests
}

// numbered is a request with numbers instead of block ids.
type numbered struct {
	trace.Request        // without HashIDs
	blocks        int32  // number of blocks of the request
	root          uint64 // id of the first block
}

// collect reads all requests.
func (c *collector) collect(reqs trace.Requests, opts Options) error {
	full, empty := make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		empty <- &batch{}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := range full {
			c.count(b, opts.Watch)
			empty <- b
		}
	}()
	err := c.read(reqs, opts.Line, full, empty)
	close(full)
	<-done
	return err
}

// read numbers the blocks of all requests and hands them over in batches.
func (c *collector) read(reqs trace.Requests, line func() int, full chan<- *batch, empty <-chan *batch) error {
	b := <-empty
	rows := 0
	for r, err := range reqs {
		if err != nil {
			return err
		}
		if rows == maxRequests {
			return fmt.Errorf("more than %d requests", maxRequests)
		}
		c.detector.Add(r.InputLength, r.HashIDs)
		c.declared.add(r)
		c.lengths.addMarks(&r)
		c.sessions.add(&r, line)
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

// count adds the requests of a batch and empties it.
func (c *collector) count(b *batch, watch func(trace.Request, []uint32)) {
	left := b.numbers
	for i := range b.requests {
		r := &b.requests[i]
		c.rows.list.Add(rowOf(&r.Request, r.blocks > 0))
		numbers := left[:r.blocks:r.blocks]
		left = left[r.blocks:]
		c.prefix.add(&c.rows, numbers, r.root)
		if watch != nil {
			watch(r.Request, numbers)
		}
	}
	b.requests, b.numbers = b.requests[:0], b.numbers[:0]
}
