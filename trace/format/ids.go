package format

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sort"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
)

// mostID keeps ids that are made here readable for tools that have no unsigned
// 64-bit integers.
const mostID = 1<<63 - 1

// mix is a hash of two numbers: one round of wyhash.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return hi ^ lo
}

// chain turns hashes of single blocks into ids of prefixes, in place: the id of
// block i is a hash of the blocks 0 to i. Two prefixes of a trace with n
// distinct ones meet by chance with a probability of about n*n / 2^64.
func chain(ids []uint64) {
	prefix := uint64(len("prefix"))
	for i, id := range ids {
		prefix = mix(mix(prefix, id), 0x9e3779b97f4a7c15)
		ids[i] = prefix & mostID
	}
}

// namespace is a range of ids of one conversation.
type namespace uint64

// namespaceOf is the range that belongs to a conversation by its name, so that
// conversations which are read apart can be merged.
func namespaceOf(conversation string) namespace {
	return namespace(xxhash.Sum64String(conversation) & mostID &^ (1<<32 - 1))
}

// apply moves ids into the range. They keep their order; one that is larger than
// the range has room for is hashed.
func (n namespace) apply(ids []uint64) {
	for i, id := range ids {
		if id < 1<<32 {
			ids[i] = uint64(n) | id
		} else {
			ids[i] = mix(uint64(n), id) & mostID
		}
	}
}

// BlockIDs says how rows without block ids get some. They are the same whenever
// a trace is read.
type BlockIDs string

// Ways to give block ids to rows that have none.
const (
	// NoIDs leaves them without.
	NoIDs BlockIDs = "none"
	// UniqueIDs shares nothing: every block has an id of its own.
	UniqueIDs BlockIDs = "unique"
	// ZipfIDs lets the first half of each prompt's blocks be the beginning of
	// one of 1,000 documents, the k-th of which is drawn with a probability
	// proportional to 1/k. The other half is the prompt's own.
	ZipfIDs BlockIDs = "zipf"
)

// ParseBlockIDs returns the way of that name; "" is none.
func ParseBlockIDs(name string) (BlockIDs, error) {
	switch b := BlockIDs(name); b {
	case NoIDs, UniqueIDs, ZipfIDs:
		return b, nil
	case "":
		return NoIDs, nil
	}
	return "", fmt.Errorf("block ids are not none, unique or zipf: %q", name)
}

const (
	documents = 1000
	// room is more blocks than a prompt can have.
	room = 1 << 27
	// givenIDs is the first id that is given, where no trace has ids of its own
	// but by chance; those of documents lie before it. Every part has as many as
	// partIDs. All of them are whole numbers of a float64.
	givenIDs = 1 << 52
	partIDs  = 1 << 40
	mostPart = givenIDs/partIDs - 1
)

// giver gives ids to rows that have none.
type giver struct {
	blockSize int    // set before the first row is given any
	next      uint64 // of blocks that are shared with nobody
	ids       []uint64
	random    *rand.Rand
	upTo      []float64 // of ZipfIDs: sum of 1/k; nil: nothing is shared
}

func newGiver(how BlockIDs, part int) *giver {
	g := &giver{next: givenIDs + uint64(part)*partIDs}
	if how != ZipfIDs {
		return g
	}
	g.random = rand.New(rand.NewPCG(0, 0x626c6f636b696473+uint64(part))) // "blockids"
	sum := 0.0
	for k := 1; k <= documents; k++ {
		sum += 1 / float64(k)
		g.upTo = append(g.upTo, sum)
	}
	return g
}

// give fills in the row's ids, which are valid until the next call.
func (g *giver) give(r *trace.Request) {
	blocks := (r.InputLength + g.blockSize - 1) / g.blockSize
	g.ids = g.ids[:0]
	if g.upTo != nil {
		document := sort.SearchFloat64s(g.upTo, g.random.Float64()*g.upTo[documents-1])
		first := givenIDs - uint64(documents-min(document, documents-1))*room
		for i := range blocks / 2 {
			g.ids = append(g.ids, first+uint64(i))
		}
	}
	for len(g.ids) < blocks {
		g.ids = append(g.ids, g.next)
		g.next++
	}
	r.HashIDs = g.ids
}
