package format

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
)

// dynamo is the source of a Dynamo server's request log, in one or more files. A
// line is written when its request ends, so lines are not in order of arrival:
// see textFiles. It holds about 60 bytes per request and 50 per session.
type dynamo struct {
	textFiles
	current int   // file of the first reading
	indexed bool  // all files
	failed  error // of the first reading, to be returned once
	spots   []dynamoSpot
	origin  float64            // ms since 1970
	ends    map[uint64]float64 // of each session's previous turn
	ids     []uint64           // to be reused
}

// dynamoSpot is the position of a request and the time it ran.
type dynamoSpot struct {
	begin, end   float64 // ms since 1970, NaN if unknown
	offset       int64
	length, line int32
	file         int32
}

// BlockSize returns the tokens of a block, 0 if no request declares it.
func (d *dynamo) BlockSize() int {
	d.prepare()
	return d.size
}

func (d *dynamo) Read(r *trace.Request) error {
	if d.prepare(); d.failed != nil {
		err := d.failed
		d.failed = nil
		return err
	}
	if len(d.spots) == 0 {
		return io.EOF
	}
	s := &d.spots[0]
	d.spots = d.spots[1:]
	d.name, d.line = d.files[s.file].name, int(s.line)
	d.ids = r.HashIDs
	row, err := d.readSpot(s)
	if err != nil {
		return &trace.RowError{File: d.name, Line: d.line, Err: trace.ReadError{Err: err}}
	}
	*r = row
	d.setTime(r, s)
	return nil
}

// readSpot reads the request at a spot. Its notes were taken the first time.
func (d *dynamo) readSpot(s *dynamoSpot) (trace.Request, error) {
	raw, err := d.readAt(d.files[s.file], s.offset, s.length)
	if err != nil {
		return trace.Request{}, err
	}
	saved := d.notes
	d.notes = &notes{}
	row, _, err := d.parse(raw)
	d.notes = saved
	if err != nil {
		err = fmt.Errorf("the file changed while it was read: %w", err)
	}
	return row, err
}

// prepare reads to the end of the last file, or to the next bad line.
func (d *dynamo) prepare() {
	if d.indexed || d.failed != nil {
		return
	}
	if d.failed = d.index(); d.failed == nil {
		d.indexed = true
		d.sort()
	}
}

// index finds the requests of the remaining lines. It can be called again after
// the error of a row.
func (d *dynamo) index() error {
	for d.current < len(d.files) {
		f := d.files[d.current]
		if err := f.open(); err != nil {
			return err
		}
		d.name = f.name
		for {
			line, err := f.text.Line()
			d.line = f.text.Number()
			if err == io.EOF {
				break
			}
			if err == nil && len(line) > 0 {
				err = d.keep(f, line)
			}
			if err != nil {
				return &trace.RowError{File: f.name, Line: d.line, Err: err}
			}
		}
		d.current++
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// keep records the position of a line's request, if it has one.
func (d *dynamo) keep(f *textFile, line []byte) error {
	row, s, err := d.parse(line)
	if err == errLeftOut {
		return nil
	}
	if err != nil {
		return otherFormat(err, line, Dynamo)
	}
	d.ids = row.HashIDs
	if d.line > math.MaxInt32 {
		return trace.ReadError{Err: fmt.Errorf("more than %d lines", math.MaxInt32)}
	}
	s.offset, s.length = f.base+f.text.At(), int32(len(line))
	s.line, s.file = int32(d.line), int32(d.current)
	if f.spooled {
		s.offset = d.spool.size
		if _, err := d.spool.Write(line); err != nil {
			return trace.ReadError{Err: err}
		}
	}
	d.spots = append(d.spots, s)
	return nil
}

// sort puts the requests in order of arrival.
func (d *dynamo) sort() {
	slices.SortStableFunc(d.spots, func(a, b dynamoSpot) int { return cmp.Compare(a.begin, b.begin) })
	if i := slices.IndexFunc(d.spots, func(s dynamoSpot) bool { return !math.IsNaN(s.begin) }); i >= 0 {
		d.origin = d.spots[i].begin
	}
}

// setTime sets the arrival of the next request, or its delay after the previous
// turn.
func (d *dynamo) setTime(r *trace.Request, s *dynamoSpot) {
	if math.IsNaN(s.begin) {
		return
	}
	r.Timestamp = trace.Some(s.begin - d.origin)
	if r.SessionID == "" {
		return
	}
	session := xxhash.Sum64String(r.SessionID)
	before, later := d.ends[session]
	if !later || !(before > s.end) {
		d.ends[session] = s.end
	}
	switch {
	case !later || math.IsNaN(before) || d.recorded:
	case s.begin < before:
		d.notes.count("turns that began before the end of the previous turn, with a timestamp instead of a delay")
	default:
		r.Delay, r.Timestamp = trace.Some(roundToMicrosecond(s.begin-before)), trace.Opt[float64]{}
	}
}

// roundToMicrosecond removes the rounding errors of milliseconds since 1970.
func roundToMicrosecond(ms float64) float64 { return math.Round(ms*1000) / 1000 }
