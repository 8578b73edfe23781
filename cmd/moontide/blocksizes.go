package main

import (
	"cmp"
	"fmt"

	"moontide/trace"
	"moontide/trace/format"
)

// blockSizes checks that merged traces have the same block size.
type blockSizes []*blocksOf

// blocksOf holds the evidence for the block size of one trace.
type blocksOf struct {
	name string
	seen bool // a row has ids
	trace.BlockDetector
}

// agreeing returns the stream of a trace, which fails at the row that contradicts the block
// size of another trace. size is that of traces that do not state one; 0 detects it.
func (s *blockSizes) agreeing(reqs trace.Requests, name string, size int, r *format.Reader) trace.Requests {
	own := &blocksOf{name: name}
	*s = append(*s, own)
	return trace.Checked(reqs, func(row trace.Request) error {
		if len(row.HashIDs) == 0 {
			return nil
		}
		if !own.seen {
			own.seen = true
			if known := cmp.Or(r.BlockSize(), size); known > 0 {
				own.BlockDetector = trace.KnownBlocks(known)
			}
		}
		own.Add(row)
		return s.conflict(own)
	})
}

func (s *blockSizes) conflict(own *blocksOf) error {
	for _, other := range *s {
		if other != own && other.seen && own.Disagrees(&other.BlockDetector) {
			return fmt.Errorf("block size is %s, but that of %s is %s: their block ids cannot be merged; --block-size sets the size of traces that do not state one",
				own.BlockSize(), other.name, other.BlockSize())
		}
	}
	return nil
}
