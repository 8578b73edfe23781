package prompt

import (
	"encoding/binary"

	"moontide/trace/block"

	"github.com/cespare/xxhash/v2"
)

// domain separates the keys of different purposes.
type domain byte

const (
	blockDomain  domain = 'b'
	rowDomain    domain = 'r'
	fillerDomain domain = 'f'
)

// base returns the hash from which all keys of a domain and name are derived. It
// includes the salt's length to separate salt and name.
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

// key is a bijection of number: keys with the same base never collide.
func key(base, number uint64) uint64 { return block.Mix(base ^ number) }

// draw returns number j of the random sequence of a key. Numbers can be drawn in
// any order, so any partial block is a prefix of its block.
func draw(key, j uint64) uint64 { return block.Mix(key + (j+1)*block.Gamma) }
