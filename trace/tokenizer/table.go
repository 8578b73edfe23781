package tokenizer

import (
	"math/bits"
	"math/rand/v2"
)

// table is a hash table with open addressing, which is filled once. The zero key
// marks free slots.
type table[K comparable, V any] struct {
	slots []slot[K, V] // a power of two, at most half of them taken
}

type slot[K comparable, V any] struct {
	key   K
	value V
}

// newTable returns a table for up to n keys.
func newTable[K comparable, V any](n int) table[K, V] {
	return table[K, V]{make([]slot[K, V], 1<<bits.Len(uint(2*n)))}
}

// at returns the slot of a key, which is free if the table lacks the key.
func (t *table[K, V]) at(hash uint64, key K) *slot[K, V] {
	var free K
	for i := hash; ; i++ {
		s := &t.slots[i&uint64(len(t.slots)-1)]
		if s.key == key || s.key == free {
			return s
		}
	}
}

// seed keeps the keys of a file from being chosen to collide.
var seed = [2]uint64{rand.Uint64(), rand.Uint64()}

func hash(a, b uint64) uint64 {
	high, low := bits.Mul64(a^seed[0], b^seed[1])
	return high ^ low
}

// word is a text of up to maxWord bytes: the bytes and, in the last one, their
// number.
type word struct{ low, high uint64 }

const maxWord = 15

func (w word) hash() uint64 { return hash(w.low, w.high) }

// first returns the first n bytes of w, at most maxWord.
func (w word) first(n int) word {
	keep := &prefixes[n&maxWord]
	return word{w.low & keep.low, w.high&keep.high | uint64(n)<<56}
}

// at returns the i-th byte of 16.
func (w word) at(i int) byte {
	if i < 8 {
		return byte(w.low >> (8 * i))
	}
	return byte(w.high >> (8 * (i - 8)))
}

// prefixes masks the first bytes of a word, by their number.
var prefixes = func() (masks [maxWord + 1]word) {
	for n := range masks {
		masks[n].low = 1<<(8*n) - 1
		masks[n].high = 1<<(8*max(n-8, 0)) - 1
	}
	return masks
}()

// loadWord returns the first 16 bytes of a text, with zeros after its end.
func loadWord(text string) (w word) {
	if len(text) >= 16 {
		return word{load8(text), load8(text[8:])}
	}
	for i := range len(text) {
		if i < 8 {
			w.low |= uint64(text[i]) << (8 * i)
		} else {
			w.high |= uint64(text[i]) << (8 * (i - 8))
		}
	}
	return w
}

func load8(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
