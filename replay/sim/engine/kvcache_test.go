package engine

import "testing"

func TestEvictionFreesMemory(t *testing.T) {
	c := newKVCache(1000, 1)
	c.allocate(1000)
	c.release(c.keep(nil, promptOf(1, sequence(1000, 1)...).blocks), 0)
	c.allocate(999)
	for _, r := range c.runs {
		if len(r.hashes) != 1 || cap(r.hashes) > 250 {
			t.Errorf("a run of %d blocks keeps the memory of %d", len(r.hashes), cap(r.hashes))
		}
	}
}
