package block

// hashTable finds single ids and pages by open addressing with linear probing. It
// needs less than half the memory of a Go map and usually one cache miss a
// lookup. Nothing is ever removed. The zero hashTable is empty.
//
// The search for all ids of a page's range starts at the same entry. Single ids
// that a page took over may stay in the table; their numbers agree with the page.
type hashTable struct {
	entries []entry // a power of two
	used    int     // entries that are not free
}

// entry is a single id with its number plus 1, or the page of all ids with the
// upper bits of id. Its value is 0 if it is free. It has 12 bytes because the id
// is split; a uint64 would align it to 16.
type entry struct{ low, high, value uint32 }

// pageFlag marks the value of a page.
const pageFlag = 1 << 31

func (e *entry) id() uint64   { return uint64(e.high)<<32 | uint64(e.low) }
func (e *entry) isPage() bool { return e.value&pageFlag != 0 }
func (e *entry) page() uint32 { return e.value &^ pageFlag }

// find returns the page of id, or its single entry, or else a free entry for it,
// and whether it passed another single id of the same page. The entry is valid
// until the next put.
func (h *hashTable) find(id uint64) (e *entry, neighbour bool) {
	if h.entries == nil {
		h.entries = make([]entry, 16)
	}
	mask := uint64(len(h.entries) - 1)
	for i := Mix(id>>pageBits) & mask; ; i = (i + 1) & mask {
		e := &h.entries[i]
		if e.value == 0 || e.id() == id {
			return e, neighbour
		}
		if e.id()>>pageBits == id>>pageBits {
			if e.isPage() {
				return e, neighbour
			}
			neighbour = true
		}
	}
}

// put fills the free entry that find returned for id.
func (h *hashTable) put(e *entry, id uint64, value uint32) {
	*e = entry{uint32(id), uint32(id >> 32), value}
	if h.used++; 4*h.used > 3*len(h.entries) {
		h.double()
	}
}

// replaceByPage turns the first single id of a range into the range's page and
// copies the numbers of all single ids to p. There must be at least one.
func (h *hashTable) replaceByPage(id uint64, number uint32, p *page) {
	mask := uint64(len(h.entries) - 1)
	value := number | pageFlag
	for i := Mix(id>>pageBits) & mask; h.entries[i].value != 0; i = (i + 1) & mask {
		e := &h.entries[i]
		if e.id()>>pageBits != id>>pageBits {
			continue
		}
		p[e.id()%pageSize] = e.value
		if value != 0 {
			e.value, value = value, 0
		}
	}
}

func (h *hashTable) double() {
	old := h.entries
	*h = hashTable{entries: make([]entry, 2*len(old))}
	for _, from := range old {
		if from.value == 0 {
			continue
		}
		if to, _ := h.find(from.id()); to.value == 0 { // else its page replaces it
			*to = from
			h.used++
		}
	}
}

// Mix spreads differences in a few bits over all bits. It is a bijection: the finalizer of
// SplitMix64 (Steele, Lea and Flood, 2014, with Stafford's constants), whose sequences are
// Mix(key + Gamma), Mix(key + 2*Gamma), ...
func Mix(key uint64) uint64 {
	key = (key ^ key>>30) * 0xbf58476d1ce4e5b9
	key = (key ^ key>>27) * 0x94d049bb133111eb
	return key ^ key>>31
}

// Gamma is 2^64 divided by the golden ratio.
const Gamma = 0x9e3779b97f4a7c15
