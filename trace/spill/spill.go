// Package spill is an external sort for records that do not fit into memory.
//
//	var s spill.Sorter
//	defer s.Close()
//	for ... {
//		err := s.Add(key, record)
//	}
//	for r, err := range s.All {
//		if err != nil { ... }
//		use(r.Key, r.Data)
//	}
//
// A [Sorter] holds a part of the records in memory, sorts it when it is full, and
// appends it to one temporary [File]. All merges the sorted parts.
package spill

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"moontide/trace/atomicfile"
	"slices"
)

const (
	defaultMemory = 64 << 20
	// mostMemory keeps positions in 32 bits.
	mostMemory = 1 << 30
	// mergeMemory is shared by the buffers of the sorted parts, each at least minBuffer.
	mergeMemory = 16 << 20
	minBuffer   = 16 << 10
	maxBuffer   = 512 << 10
)

// Record is a record and its key.
type Record struct {
	Key  uint64
	Data []byte
}

// Sorter sorts records by key, and those of equal keys by the order in which they were
// added. The zero Sorter is ready to use. It is not safe for concurrent use.
type Sorter struct {
	// Memory is the memory for records in bytes, up to 1 GiB; 0 means 64 MiB. A
	// longer record is held alone.
	Memory int

	data   []byte
	places []place
	file   *atomicfile.Temporary // nil until the memory is full
	size   int64                 // of the file
	parts  []segment             // of the file
}

// place is where a record is in memory.
type place struct {
	key        uint64
	start, end uint32
}

const placeSize = 16

// segment is a sorted part of the file.
type segment struct{ offset, size int64 }

// Add adds a copy of a record, which must be shorter than 2 GiB.
func (s *Sorter) Add(key uint64, data []byte) error {
	if len(data) > math.MaxInt32 {
		return fmt.Errorf("a record has %d bytes", len(data))
	}
	memory := cmp.Or(min(s.Memory, mostMemory), defaultMemory)
	if len(s.data)+len(data)+placeSize*(len(s.places)+1) > memory && len(s.places) > 0 {
		if err := s.flush(); err != nil {
			return fmt.Errorf("writing a temporary file: %w", err)
		}
	}
	start := uint32(len(s.data))
	s.data = append(s.data, data...)
	s.places = append(s.places, place{key, start, uint32(len(s.data))})
	return nil
}

// sort sorts the records in memory.
func (s *Sorter) sort() {
	inOrder := func(a, b place) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		case a.start != b.start:
			return int(a.start) - int(b.start)
		}
		return int(a.end) - int(b.end)
	}
	if !slices.IsSortedFunc(s.places, inOrder) {
		slices.SortFunc(s.places, inOrder)
	}
}

// flush appends the records in memory to the file.
func (s *Sorter) flush() (err error) {
	if s.file == nil {
		if s.file, err = atomicfile.NewTemporary(); err != nil {
			return err
		}
	}
	s.sort()
	part := segment{offset: s.size}
	out := bufio.NewWriterSize(s.file, maxBuffer)
	var head [2 * binary.MaxVarintLen64]byte
	last := uint64(0)
	for _, p := range s.places {
		n := binary.PutUvarint(head[:], p.key-last)
		n += binary.PutUvarint(head[n:], uint64(p.end-p.start))
		last = p.key
		out.Write(head[:n]) // errors are returned again by Flush
		out.Write(s.data[p.start:p.end])
		part.size += int64(n) + int64(p.end-p.start)
	}
	s.size += part.size
	s.parts = append(s.parts, part)
	s.data, s.places = s.data[:0], s.places[:0]
	return out.Flush()
}

// All yields the records in order. They are valid until the next one. No record may be
// added afterwards, but All may be called again.
func (s *Sorter) All(yield func(Record, error) bool) {
	s.sort()
	if s.file == nil {
		for _, p := range s.places {
			if !yield(Record{p.key, s.data[p.start:p.end:p.end]}, nil) {
				return
			}
		}
		return
	}
	if len(s.places) > 0 {
		if err := s.flush(); err != nil {
			yield(Record{}, fmt.Errorf("writing a temporary file: %w", err))
			return
		}
	}
	s.data, s.places = nil, nil
	s.merge(yield)
}

// merge yields the records of all parts. heads is a heap.
func (s *Sorter) merge(yield func(Record, error) bool) {
	heads := make([]*head, len(s.parts))
	buffer := min(max(mergeMemory/len(s.parts), minBuffer), maxBuffer)
	for i, p := range s.parts {
		h := &head{part: i, in: bufio.NewReaderSize(io.NewSectionReader(s.file, p.offset, p.size), buffer)}
		if err := h.next(); err != nil {
			yield(Record{}, reading(err))
			return
		}
		heads[i] = h
	}
	for i := len(heads)/2 - 1; i >= 0; i-- {
		sink(heads, i)
	}
	for len(heads) > 0 {
		if !yield(heads[0].Record, nil) {
			return
		}
		switch err := heads[0].next(); err {
		case nil:
		case io.EOF:
			last := len(heads) - 1
			heads[0], heads = heads[last], heads[:last]
		default:
			yield(Record{}, reading(err))
			return
		}
		sink(heads, 0)
	}
}

func reading(err error) error { return fmt.Errorf("reading a temporary file: %w", err) }

// Close removes the file.
func (s *Sorter) Close() error {
	file := s.file
	s.file = nil
	return file.Close()
}

// head is the next record of a part.
type head struct {
	Record
	part int
	in   *bufio.Reader
}

// next reads the next record, or returns io.EOF.
func (h *head) next() error {
	step, err := binary.ReadUvarint(h.in)
	if err != nil {
		return err
	}
	n, err := binary.ReadUvarint(h.in)
	if err != nil {
		return errors.Join(io.ErrUnexpectedEOF, err)
	}
	h.Key += step
	h.Data = slices.Grow(h.Data[:0], int(n))[:n]
	if _, err = io.ReadFull(h.in, h.Data); err != nil {
		return errors.Join(io.ErrUnexpectedEOF, err)
	}
	return nil
}

func (h *head) before(o *head) bool {
	return h.Key < o.Key || h.Key == o.Key && h.part < o.part
}

// sink restores the heap below i.
func sink(heads []*head, i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heads); child++ {
			if heads[child].before(heads[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		heads[i], heads[first] = heads[first], heads[i]
		i = first
	}
}

// KeyOf returns a key of the same order as the number, which is not NaN. Both zeros have
// one key.
func KeyOf(x float64) uint64 {
	b := math.Float64bits(x + 0) // -0 becomes 0
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}
