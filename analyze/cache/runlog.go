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

// runLog holds the runs of requests, in their order, as variable-length integers.
type runLog struct {
	byteLog
	record []byte // to be reused
}

// add adds a request of isl tokens and some blocks.
func (l *runLog) add(isl, blocks int, runs []run) {
	b := binary.AppendUvarint(l.record[:0], uint64(isl))
	b = binary.AppendUvarint(b, uint64(blocks))
	b = binary.AppendUvarint(b, uint64(len(runs)))
	for _, r := range runs {
		b = binary.AppendUvarint(b, uint64(r.distance))
		b = binary.AppendVarint(b, int64(r.n))
	}
	l.record = b
	l.byteLog.add(b)
}

// logged is a request of a runLog.
type logged struct {
	isl, blocks int
	runs        []run // valid until the next request
}

// all yields the requests.
func (l *runLog) all(yield func(logged) bool) {
	var r logged
	for _, b := range l.pages {
		uvarint := func() int {
			x, n := binary.Uvarint(b)
			b = b[n:]
			return int(x)
		}
		for len(b) > 0 {
			r.isl, r.blocks, r.runs = uvarint(), uvarint(), r.runs[:0]
			for range uvarint() {
				distance := uvarint()
				n, size := binary.Varint(b)
				b = b[size:]
				r.runs = append(r.runs, run{uint32(distance), int32(n)})
			}
			if !yield(r) {
				return
			}
		}
	}
}
