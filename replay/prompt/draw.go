package prompt

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// domain keeps apart the keys that are made for different purposes.
type domain byte

const (
	blockDomain  domain = 'b'
	rowDomain    domain = 'r'
	fillerDomain domain = 'f'
)

// base is what all keys of one domain and name are made from. The length of
// the salt goes in so that no salt and name run together into another pair.
func (s Source) base(d domain, name string) uint64 {
	var head [17]byte
	head[0] = byte(d)
	binary.LittleEndian.PutUint64(head[1:], s.Seed)
	binary.LittleEndian.PutUint64(head[9:], uint64(len(s.Salt)))
	var hash xxhash.Digest
	hash.Reset()
	hash.Write(head[:])
	hash.WriteString(s.Salt)
	hash.WriteString(name)
	return hash.Sum64()
}

// key spreads a number over 64 bits. Different numbers of one base never share
// a key: mix is a bijection.
func key(base, number uint64) uint64 { return mix(base ^ number) }

// gamma is the increment of splitmix64: 2^64 divided by the golden ratio.
const gamma = 0x9e3779b97f4a7c15

// draw is position j of the random sequence that belongs to a key. That every
// position can be had on its own is what makes any tail a prefix of its block.
func draw(key, j uint64) uint64 { return mix(key + (j+1)*gamma) }

// mix is the finalizer of splitmix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
