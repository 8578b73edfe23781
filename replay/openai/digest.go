package openai

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"sync"
)

// digest is a sum of hashes, so it does not depend on their order.
type digest struct {
	mu   sync.Mutex
	sum  big.Int
	hash big.Int // hash of the last row; kept to reuse its memory
}

func (d *digest) add(row int, prompt []byte) {
	h := sha256.New()
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(row))
	h.Write(number[:])
	h.Write(prompt)
	d.addHash(h.Sum(nil))
}

func (d *digest) addHash(hash []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sum.Add(&d.sum, d.hash.SetBytes(hash))
}

// String returns the sum modulo 2^256 in hexadecimal.
func (d *digest) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	modulus := new(big.Int).Lsh(big.NewInt(1), 256)
	return fmt.Sprintf("%064x", modulus.Mod(&d.sum, modulus))
}

// PromptDigest returns the sum modulo 2^256, in hexadecimal, of SHA-256(row,
// prompt) over all prepared requests: the row as 8 bytes, big-endian, and the
// prompt as the body's member, from the comma before its key. Runs with equal
// digests sent equal prompts.
func (c *Client) PromptDigest() string { return c.digest.String() }
