package format

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
)

// maxID is the largest generated id: many tools have no unsigned 64-bit integers.
const maxID = 1<<63 - 1

// mix is a hash of two numbers: one round of wyhash.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return hi ^ lo
}

// chain turns hashes of single blocks into prefix-chained ids, in place: the id
// of block i is a hash of the blocks 0 to i. Among n distinct prefixes, two
// collide with a probability of about n*n / 2^64.
func chain(ids []uint64) {
	prefix := uint64(len("prefix"))
	for i, id := range ids {
		prefix = mix(mix(prefix, id), 0x9e3779b97f4a7c15)
		ids[i] = prefix & maxID
	}
}

// namespace is the range of block ids of one conversation.
type namespace uint64

// namespaceOf derives the range from the conversation's name, so that
// conversations that are read separately can be merged.
func namespaceOf(conversation string) namespace {
	return namespace(xxhash.Sum64String(conversation) & maxID &^ (1<<32 - 1))
}

// apply moves ids into the range, in the same order. An id that is too large for
// the range is hashed.
func (n namespace) apply(ids []uint64) {
	for i, id := range ids {
		if id < 1<<32 {
			ids[i] = uint64(n) | id
		} else {
			ids[i] = mix(uint64(n), id) & maxID
		}
	}
}

const (
	// firstID is the first unique id. Traces rarely have ids from it on. Every part has
	// partIDs unique ids. All are exact in a float64.
	firstID = 1 << 52
	partIDs = 1 << 40
	maxPart = firstID/partIDs - 1
)

// idGenerator assigns unique block ids to rows that have none.
type idGenerator struct {
	blockSize int    // set before the first assign
	next      uint64 // unique id
	ids       []uint64
}

// assign sets the row's ids, which are valid until the next call.
func (g *idGenerator) assign(r *trace.Request) {
	g.ids = g.ids[:0]
	for range (r.InputLength + g.blockSize - 1) / g.blockSize {
		g.ids = append(g.ids, g.next)
		g.next++
	}
	r.HashIDs = g.ids
}
