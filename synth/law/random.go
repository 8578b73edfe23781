package law

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Stream returns the random numbers of one aspect in sequence. Streams of
// different seeds or aspects are unrelated, neighbouring seeds included.
func Stream(seed uint64, aspect string) *rand.Rand {
	high, low := digest(seed, aspect)
	return rand.New(rand.NewPCG(high, low))
}

// Places are the random numbers of one aspect by place instead of in sequence.
type Places uint64

// PlacesOf returns the numbers of one aspect. Those of different seeds or
// aspects are unrelated, to each other and to every [Stream].
func PlacesOf(seed uint64, aspect string) Places {
	_, low := digest(seed, "places of "+aspect)
	return Places(low)
}

// At returns the number at place i, j, uniform in [MinP, 1-MinP].
func (p Places) At(i, j int) float64 {
	// Each index is a step of the SplitMix64 sequence (Steele, Lea & Flood
	// 2014); the second sequence begins where the first one stands.
	h := mix(uint64(p) + uint64(i)*gamma)
	h = mix(h + uint64(j)*gamma)
	return (float64(h>>12) + 0.5) / (1 << 52) // one bit more would round up to 1
}

const gamma = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func digest(seed uint64, aspect string) (high, low uint64) {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), aspect...))
	return binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])
}
