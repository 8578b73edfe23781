package trace

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"moontide/trace/spill"
)

// Codec turns rows into bytes and back, so that they can be kept on disk. Package
// format has one.
type Codec struct {
	Append func(dst []byte, r Request) []byte
	Parse  func(b []byte, r *Request) error
	// Memory bounds the rows held of each kind, with and without a timestamp, in
	// bytes; 0 means 64 MiB.
	Memory int
}

// rowStore holds numbered rows and yields them in order of time, and of number.
type rowStore interface {
	// add adds a row with its time in ms.
	add(number int, at float64, r Request) error
	// addUntimed adds a row whose time is not known yet.
	addUntimed(number int, r Request) error
	// all yields the rows. at returns the times of those that were added without.
	all(at func(number int) float64, yield func(Request, error) bool)
	close() error
}

func newRowStore(c Codec) rowStore {
	if c.Append == nil {
		return &memoryStore{}
	}
	s := &diskStore{codec: c}
	s.timed.Memory, s.untimed.Memory, s.estimated.Memory = c.Memory, c.Memory, c.Memory
	return s
}

// memoryStore holds rows in memory.
type memoryStore struct{ rows []storedRow }

type storedRow struct {
	at     float64 // NaN if not known
	number int
	Request
}

func (s *memoryStore) add(number int, at float64, r Request) error {
	s.rows = append(s.rows, storedRow{at, number, r})
	return nil
}

func (s *memoryStore) addUntimed(number int, r Request) error {
	return s.add(number, math.NaN(), r)
}

func (s *memoryStore) all(at func(int) float64, yield func(Request, error) bool) {
	for i := range s.rows {
		if r := &s.rows[i]; math.IsNaN(r.at) {
			r.at = at(r.number)
		}
	}
	slices.SortStableFunc(s.rows, func(a, b storedRow) int { return cmp.Compare(a.at, b.at) })
	for _, r := range s.rows {
		if !yield(r.Request, nil) {
			return
		}
	}
}

func (s *memoryStore) close() error { return nil }

// diskStore holds rows on disk. A row is its number, doubled and with the lowest bit
// set if it has a timestamp, the timestamp, and the rest in the codec's form.
type diskStore struct {
	codec     Codec
	timed     spill.Sorter // by time
	untimed   spill.Sorter // by number
	estimated spill.Sorter // those of untimed, by time
	some      bool         // untimed has rows
	row       []byte       // to be reused
}

func (s *diskStore) add(number int, at float64, r Request) error {
	return s.addTo(&s.timed, spill.KeyOf(at), number, r)
}

func (s *diskStore) addUntimed(number int, r Request) error {
	s.some = true
	return s.addTo(&s.untimed, uint64(number), number, r)
}

func (s *diskStore) addTo(to *spill.Sorter, key uint64, number int, r Request) error {
	at := r.Timestamp
	r.Timestamp = Opt[float64]{}
	head := uint64(number) << 1
	if at.Set {
		head |= 1
	}
	s.row = binary.AppendUvarint(s.row[:0], head)
	if at.Set {
		s.row = binary.LittleEndian.AppendUint64(s.row, math.Float64bits(at.Value))
	}
	s.row = s.codec.Append(s.row, r)
	if err := to.Add(key, s.row); err != nil {
		return fmt.Errorf("sorting rows: %w", err)
	}
	return nil
}

func (s *diskStore) parse(b []byte) (r Request, err error) {
	head, n := binary.Uvarint(b)
	b = b[n:]
	var at Opt[float64]
	if head&1 == 1 {
		at = Some(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		b = b[8:]
	}
	if err = s.codec.Parse(b, &r); err != nil {
		return r, fmt.Errorf("row %d cannot be sorted: %w", head>>1+1, err)
	}
	r.Timestamp = at
	return r, nil
}

func (s *diskStore) all(at func(int) float64, yield func(Request, error) bool) {
	err := s.estimate(at)
	if err != nil {
		yield(Request{}, err)
		return
	}
	for b, err := range s.merged() {
		var r Request
		if err == nil {
			r, err = s.parse(b.Data)
		}
		if !yield(r, err) || err != nil {
			return
		}
	}
}

// estimate sorts the rows without a timestamp by time.
func (s *diskStore) estimate(at func(int) float64) error {
	for b, err := range s.untimed.All {
		if err == nil {
			err = s.estimated.Add(spill.KeyOf(at(int(b.Key))), b.Data)
		}
		if err != nil {
			return fmt.Errorf("sorting rows: %w", err)
		}
	}
	return s.untimed.Close()
}

// merged yields all rows by time and number.
func (s *diskStore) merged() iter.Seq2[spill.Record, error] {
	if !s.some {
		return s.timed.All
	}
	return func(yield func(spill.Record, error) bool) {
		next, stop := iter.Pull2[spill.Record, error](s.estimated.All)
		defer stop()
		other, err, ok := next()
		for r, errTimed := range s.timed.All {
			for ok && errTimed == nil && (err != nil || before(other, r)) {
				if !yield(other, err) {
					return
				}
				other, err, ok = next()
			}
			if !yield(r, errTimed) {
				return
			}
		}
		for ; ok; other, err, ok = next() {
			if !yield(other, err) {
				return
			}
		}
	}
}

func before(a, b spill.Record) bool {
	if a.Key != b.Key {
		return a.Key < b.Key
	}
	first, _ := binary.Uvarint(a.Data)
	second, _ := binary.Uvarint(b.Data)
	return first < second
}

func (s *diskStore) close() error {
	return errors.Join(s.timed.Close(), s.untimed.Close(), s.estimated.Close())
}
