package block

// hashTable finds single ids and pages by open addressing with linear probing:
// less than half the memory of Go's map, and mostly one cache miss a look-up.
// Nothing is ever removed. The zero hashTable is empty and ready.
//
// The search for every id of a page's range begins at the same place. Single ids
// that a page took over may stay behind; they still say the same as the page.
type hashTable struct {
	entries []entry // a power of two of them
	used    int     // how many of them are not free
}

// entry is a single id with its number plus 1, or the page of all ids with the
// upper bits of id. It is 12 bytes because the id is kept in halves; a uint64
// would align it to 16. The value 0 is a free entry.
type entry struct{ low, high, value uint32 }

// pageFlag tells an entry's page from a number.
const pageFlag = 1 << 31

func (e *entry) id() uint64   { return uint64(e.high)<<32 | uint64(e.low) }
func (e *entry) isPage() bool { return e.value&pageFlag != 0 }
func (e *entry) page() uint32 { return e.value &^ pageFlag }

// find returns the page that id belongs to or its own entry, else the free entry
// where it is to be; and whether it passed another single id of the same page on
// the way. The entry is good until the next put.
func (h *hashTable) find(id uint64) (e *entry, neighbour bool) {
	if h.entries == nil {
		h.entries = make([]entry, 16)
	}
	mask := uint64(len(h.entries) - 1)
	for i := mix(id>>pageBits) & mask; ; i = (i + 1) & mask {
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

// put fills the free entry that was found for id.
func (h *hashTable) put(e *entry, id uint64, value uint32) {
	*e = entry{uint32(id), uint32(id >> 32), value}
	if h.used++; 4*h.used > 3*len(h.entries) {
		h.double()
	}
}

// replaceByPage makes the first single id of a range, of which there is one at
// least, the range's page, and copies the numbers of all to p.
func (h *hashTable) replaceByPage(id uint64, number uint32, p *page) {
	mask := uint64(len(h.entries) - 1)
	value := number | pageFlag
	for i := mix(id>>pageBits) & mask; h.entries[i].value != 0; i = (i + 1) & mask {
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

// each calls do for all entries.
func (h *hashTable) each(do func(*entry)) {
	for i := range h.entries {
		if h.entries[i].value != 0 {
			do(&h.entries[i])
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
		if to, _ := h.find(from.id()); to.value == 0 { // else its page has it
			*to = from
			h.used++
		}
	}
}

// mix spreads keys that differ in few bits, wherever these are, over all bits.
// It is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014, with Stafford's
// constants).
func mix(key uint64) uint64 {
	key = (key ^ key>>30) * 0xbf58476d1ce4e5b9
	key = (key ^ key>>27) * 0x94d049bb133111eb
	return key ^ key>>31
}
