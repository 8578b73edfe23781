package cache

import "math/bits"

const (
	wordBits   = 64
	chunkWords = 8
	chunkBits  = chunkWords * wordBits

	slabBits = 12
	slabSize = 1 << slabBits

	firstPlaces = 1 << 16
	// placesPerBlock is the number of places per distinct block from which the
	// timeline is compacted: 1 byte per block, and rare enough to cost little.
	placesPerBlock = 8
)

// timeline orders blocks by their last use. Each use takes the next place, whose bit
// is set while it is some block's last use. The number of distinct blocks used since
// a place is the number of bits set after it: popcounts within a chunk of 512 bits,
// and a Fenwick tree over the chunks (Bennett and Kruskal, LRU Stack Processing,
// 1975). The zero timeline is empty. It holds at most 2^31 blocks.
type timeline struct {
	// last has the place of each block's last use plus 1, or 0, in slabs, which
	// grow without copying.
	last  []*[slabSize]uint32
	above int      // the largest number used plus 1
	live  int      // distinct blocks used: the number of bits set
	next  int      // the place of the next use
	words []uint64 // the places' bits
	// counted is the number of chunks in the tree: all before that of next.
	counted int
	tree    fenwick
}

// lastUse returns the place of a block's last use, and whether it has one.
func (t *timeline) lastUse(number uint32) (place uint32, used bool) {
	slab := int(number >> slabBits)
	if slab >= len(t.last) {
		return 0, false
	}
	place = t.last[slab][number%slabSize]
	return place - 1, place != 0
}

// after returns the number of distinct blocks last used after place, which is some
// block's last use.
func (t *timeline) after(place uint32) int {
	word := int(place / wordBits)
	chunk := int(place / chunkBits)
	n := bits.OnesCount64(t.words[word] >> (place % wordBits) >> 1)
	for _, w := range t.words[word+1 : (chunk+1)*chunkWords] {
		n += bits.OnesCount64(w)
	}
	if chunk == t.counted {
		return n
	}
	return n + t.live - t.tree.sum(chunk)
}

// use uses the blocks from the last to the first.
func (t *timeline) use(numbers []uint32) {
	t.reserve(len(numbers))
	t.set(t.next, t.next+len(numbers))
	t.next += len(numbers)
	// Bits are cleared a word at a time: neighbours were mostly used together before.
	word, mask := uint32(0), uint64(0)
	for i := 0; i < len(numbers); i++ {
		number := numbers[i]
		if int(number) >= t.above {
			if n := t.useFresh(numbers[i:], uint32(t.next-i)); n > 0 {
				i += n - 1
				continue
			}
			t.above = int(number) + 1
		}
		for int(number>>slabBits) >= len(t.last) {
			t.last = append(t.last, new([slabSize]uint32))
		}
		last := &t.last[number>>slabBits][number%slabSize]
		newest := uint32(t.next - i)
		place := *last
		switch {
		case place == 0:
			t.live++
			*last = newest
			continue
		case place > newest:
			place = newest // repeated in this request: the first occurrence is the last use
		default:
			*last = newest
		}
		place--
		if place/wordBits != word {
			t.clear(word, mask)
			word, mask = place/wordBits, 0
		}
		mask |= 1 << (place % wordBits)
	}
	t.clear(word, mask)
	t.count()
}

// useFresh is a fast path for most blocks: those never used before whose numbers
// are the next ones. It returns how many of the leading numbers are such; newest is
// the place of the first of them plus 1.
func (t *timeline) useFresh(numbers []uint32, newest uint32) int {
	n := 0
	for n < len(numbers) && int(numbers[n]) == t.above+n {
		n++
	}
	for left := n; left > 0; {
		if t.above>>slabBits == len(t.last) {
			t.last = append(t.last, new([slabSize]uint32))
		}
		room := t.last[t.above>>slabBits][t.above%slabSize:]
		room = room[:min(left, len(room))]
		for i := range room {
			room[i] = newest
			newest--
		}
		t.above += len(room)
		left -= len(room)
	}
	t.live += n
	return n
}

// clear clears the bits of mask, which are set, in a word, and uncounts them where
// the chunk is in the tree.
func (t *timeline) clear(word uint32, mask uint64) {
	t.words[word] &^= mask
	if chunk := int(word / chunkWords); chunk < t.counted && mask != 0 {
		t.tree.add(chunk, -bits.OnesCount64(mask))
	}
}

// set sets the bits of the places from..to-1.
func (t *timeline) set(from, to int) {
	for from < to {
		n := min(wordBits-from%wordBits, to-from)
		t.words[from/wordBits] |= ^uint64(0) >> (wordBits - n) << (from % wordBits)
		from += n
	}
}

// count adds full chunks to the tree.
func (t *timeline) count() {
	for ; t.counted < t.next/chunkBits; t.counted++ {
		n := 0
		for _, w := range t.words[t.counted*chunkWords : (t.counted+1)*chunkWords] {
			n += bits.OnesCount64(w)
		}
		t.tree.add(t.counted, n)
	}
}

// reserve makes room for n more uses and one place more, so that the chunk of next
// exists.
func (t *timeline) reserve(n int) {
	for t.next+n >= len(t.words)*wordBits {
		if places := len(t.words) * wordBits; t.live+n < places/placesPerBlock {
			t.compact()
			continue
		}
		t.grow()
	}
}

// grow doubles the places.
func (t *timeline) grow() {
	if t.words == nil {
		t.words = make([]uint64, firstPlaces/wordBits)
		t.tree.grow(firstPlaces / chunkBits)
		return
	}
	t.words = append(t.words, make([]uint64, len(t.words))...)
	t.tree.grow(len(t.words) / chunkWords)
}

// compact moves all last uses to the first places in order.
func (t *timeline) compact() {
	for _, slab := range t.last {
		for i, place := range slab {
			if place != 0 {
				slab[i] = uint32(t.live - t.after(place-1))
			}
		}
	}
	clear(t.words)
	clear(t.tree)
	t.set(0, t.live)
	t.next, t.counted = t.live, 0
	t.count()
}

// fenwick keeps prefix sums of a list of counts (Fenwick, A New Data Structure for
// Cumulative Frequency Tables, 1994). Item i is at i+1; the length less one is a
// power of two.
type fenwick []uint32

// add adds n, which may be negative, to the count at i.
func (f fenwick) add(i, n int) {
	for i++; i < len(f); i += i & -i {
		f[i] += uint32(n)
	}
}

// sum returns the sum of the counts 0..i.
func (f fenwick) sum(i int) int {
	n := uint32(0)
	for i++; i > 0; i &= i - 1 {
		n += f[i]
	}
	return int(n)
}

// grow makes room for n counts: a power of two at first, then twice as many as
// before. New counts are 0.
func (f *fenwick) grow(n int) {
	grown := make(fenwick, n+1)
	copy(grown, *f)
	if half := len(*f) - 1; half > 0 {
		grown[n] = grown[half]
	}
	*f = grown
}
