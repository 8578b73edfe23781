package transcript

import "math/bits"

// Blocks returns a hash for each full block of size tokens of the prompt and the first
// generated tokens of its answer. A hash covers the block and all tokens before it, so
// two prompts that begin alike have the same first hashes. The size need not be that
// of the trace's blocks.
func (p *Prompt) Blocks(size, generated int) []uint64 {
	hashes := make([]uint64, 0, (p.Len+generated)/size)
	chain, at := uint64(0), 0
	add := func(s Segment) {
		chain = mix(mix(chain, uint64(s.Kind)<<62^uint64(s.From)), s.ID)
		for end := (len(hashes) + 1) * size; end <= at+s.Len; end += size {
			hashes = append(hashes, mix(chain, uint64(end-at)))
		}
		at += s.Len
		chain = mix(chain, uint64(s.Len))
	}
	for s := range p.Segments() {
		add(s)
	}
	if generated > 0 {
		add(Segment{Source{Reply, uint64(p.Row), 0}, generated})
	}
	return hashes
}

// mix returns a hash of a and b, using the finalizer of SplitMix64 (Steele, Lea
// and Flood, 2014).
func mix(a, b uint64) uint64 {
	x := bits.RotateLeft64(a, 25) + 0x9e3779b97f4a7c15*(b+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
