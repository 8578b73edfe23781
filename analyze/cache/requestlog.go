package cache

import "encoding/binary"

// byteLog holds records without copying them when it grows.
type byteLog struct{ pages [][]byte }

const logPage = 64 << 10

func (l *byteLog) add(record []byte) {
	last := len(l.pages) - 1
	if last < 0 || cap(l.pages[last])-len(l.pages[last]) < len(record) {
		l.pages = append(l.pages, make([]byte, 0, max(logPage, len(record))))
		last++
	}
	l.pages[last] = append(l.pages[last], record...)
}

// requestLog holds requests, in their order, as variable-length integers.
type requestLog struct {
	byteLog
	record []byte // to be reused
}

// add adds a request of isl tokens and some blocks.
func (l *requestLog) add(isl, blocks int, runs []run) {
	b := binary.AppendUvarint(l.record[:0], uint64(isl))
	b = binary.AppendUvarint(b, uint64(blocks))
	b = binary.AppendUvarint(b, uint64(len(runs)))
	for _, r := range runs {
		// The sign of n is in the lowest bit, so that small numbers of either sign are short.
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.distance)), uint64(r.n)<<1^uint64(r.n>>31))
	}
	l.record = b
	l.byteLog.add(b)
}

// logged is a request of a requestLog.
type logged struct {
	isl, blocks int
	runs        []run // valid until the next request
}

// all yields the requests.
func (l *requestLog) all(yield func(logged) bool) {
	var r logged
	for _, b := range l.pages {
		uvarint := func() uint64 {
			x, n := binary.Uvarint(b)
			b = b[n:]
			return x
		}
		for len(b) > 0 {
			r.isl, r.blocks, r.runs = int(uvarint()), int(uvarint()), r.runs[:0]
			for range uvarint() {
				distance, n := uvarint(), uvarint()
				r.runs = append(r.runs, run{uint32(distance), int32(n>>1) ^ -int32(n&1)})
			}
			if !yield(r) {
				return
			}
		}
	}
}
