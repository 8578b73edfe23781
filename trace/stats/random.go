package stats

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"moontide/trace/block"
)

// NewStream returns the random numbers of one aspect of a seed, such as
// "arrivals". Streams of different seeds or aspects are independent, even for
// consecutive seeds.
func NewStream(seed uint64, aspect string) *rand.Rand {
	high, low := digest(seed, aspect)
	return rand.New(rand.NewPCG(high, low))
}

// Indexed is a source of random numbers that are looked up by index instead of
// drawn in sequence: a number depends only on the seed, the aspect and its index.
type Indexed uint64

// NewIndexed returns the numbers of one aspect of a seed. Those of different
// seeds or aspects are independent of each other and of every [NewStream].
func NewIndexed(seed uint64, aspect string) Indexed {
	_, low := digest(seed, "places of "+aspect)
	return Indexed(low)
}

// At returns the number at index i, j, uniform in [MinP, 1-MinP].
func (x Indexed) At(i, j int) float64 {
	// Each index is a step of a SplitMix64 sequence (Steele, Lea & Flood
	// 2014); the second sequence starts at the current state of the first.
	h := block.Mix(uint64(x) + uint64(i)*block.Gamma)
	h = block.Mix(h + uint64(j)*block.Gamma)
	return (float64(h>>12) + 0.5) / (1 << 52) // one bit more would round up to 1
}

func digest(seed uint64, aspect string) (high, low uint64) {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), aspect...))
	return binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])
}
