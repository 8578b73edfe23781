package format

import (
	"fmt"
	"slices"

	"moontide/trace"
	"moontide/trace/atomicfile"
)

// recordMemory is the memory for the records that are not in the file, in bytes. A longer
// record is held alone.
const recordMemory = 256 << 10

// records keeps records, the last ones in memory and the others in a temporary file.
type records struct {
	file   *atomicfile.Temporary // nil if all are in memory
	size   int64                 // of the file
	last   []byte
	buffer []byte // of the record that was read last
}

// place is where a record is.
type place struct {
	offset int64
	length int32
}

// add adds a copy of a record.
func (r *records) add(record []byte) (place, error) {
	if len(r.last) > 0 && len(r.last)+len(record) > recordMemory {
		if err := r.flush(); err != nil {
			return place{}, trace.ReadError{Err: fmt.Errorf("writing a temporary file: %w", err)}
		}
	}
	p := place{r.size + int64(len(r.last)), int32(len(record))}
	r.last = append(r.last, record...)
	return p, nil
}

// flush moves the records in memory to the file.
func (r *records) flush() (err error) {
	if r.file == nil {
		if r.file, err = atomicfile.NewTemporary(); err != nil {
			return err
		}
	}
	n, err := r.file.Write(r.last)
	r.size += int64(n)
	r.last = r.last[:0]
	return err
}

// read returns a record. It is valid until the next call of a method.
func (r *records) read(p place) ([]byte, error) {
	if p.offset >= r.size {
		return r.last[p.offset-r.size:][:p.length], nil
	}
	r.buffer = slices.Grow(r.buffer[:0], int(p.length))[:p.length]
	if _, err := r.file.ReadAt(r.buffer, p.offset); err != nil {
		return nil, trace.ReadError{Err: fmt.Errorf("reading a temporary file: %w", err)}
	}
	return r.buffer, nil
}
