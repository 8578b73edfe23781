package cache

// SetExact sets the capacity in blocks up to which the curve is exact.
func (b *SampledBuilder) SetExact(blocks int) { b.head = newHead(blocks) }
