package main

import (
	"cmp"
	"fmt"

	"moontide/trace"
	"moontide/trace/format"
)

// blockSizes are those of traces that become one: ids of blocks of one size
// mean nothing among those of another.
type blockSizes []*blocksOf

// blocksOf is what is known of the blocks of one trace.
type blocksOf struct {
	name string
	seen bool // a row with ids
	trace.BlockDetector
}

// agreeing is the stream of one of the traces, with an error at the row that
// shows its blocks to be of another size than those of another trace. size is
// what the user says of those that do not say it themselves, 0 where their rows
// are to tell.
func (s *blockSizes) agreeing(reqs trace.Requests, name string, size int, r *format.Reader) trace.Requests {
	own := &blocksOf{name: name}
	*s = append(*s, own)
	return func(yield func(trace.Request, error) bool) {
		for row, err := range reqs {
			if err == nil && len(row.HashIDs) > 0 {
				if !own.seen {
					own.seen = true
					if known := cmp.Or(r.BlockSize(), size); known > 0 {
						own.BlockDetector = trace.KnownBlocks(known)
					}
				}
				own.Add(row)
				err = s.conflict(own)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (s *blockSizes) conflict(own *blocksOf) error {
	for _, other := range *s {
		if other != own && other.seen && own.Disagrees(&other.BlockDetector) {
			return fmt.Errorf("blocks of %s, where %s has blocks of %s: their ids cannot stand in one trace; --block-size names the size of those that do not say it",
				own.BlockSize(), other.name, other.BlockSize())
		}
	}
	return nil
}
