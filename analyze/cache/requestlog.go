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

// logItem is a part of a request that a log holds as two integers.
type logItem[T any] interface {
	pair() (a, b uint64)
	ofPair(a, b uint64) T
}

// requestLog holds requests, in their order, as variable-length integers.
type requestLog[T logItem[T]] struct {
	byteLog
	record []byte // to be reused
}

// add adds a request of isl tokens and some blocks.
func (l *requestLog[T]) add(isl, blocks int, items []T) {
	b := binary.AppendUvarint(l.record[:0], uint64(isl))
	b = binary.AppendUvarint(b, uint64(blocks))
	b = binary.AppendUvarint(b, uint64(len(items)))
	for _, item := range items {
		x, y := item.pair()
		b = binary.AppendUvarint(binary.AppendUvarint(b, x), y)
	}
	l.record = b
	l.byteLog.add(b)
}

// logged is a request of a requestLog.
type logged[T any] struct {
	isl, blocks int
	items       []T // valid until the next request
}

// all yields the requests.
func (l *requestLog[T]) all(yield func(logged[T]) bool) {
	var r logged[T]
	var item T
	for _, b := range l.pages {
		uvarint := func() uint64 {
			x, n := binary.Uvarint(b)
			b = b[n:]
			return x
		}
		for len(b) > 0 {
			r.isl, r.blocks, r.items = int(uvarint()), int(uvarint()), r.items[:0]
			for range uvarint() {
				x, y := uvarint(), uvarint()
				r.items = append(r.items, item.ofPair(x, y))
			}
			if !yield(r) {
				return
			}
		}
	}
}
