package format

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
)

// dynamo is the source of what a Dynamo server records of its requests, in one
// file or several. A line is written when a request ends, so that arrivals are
// in no order. So every file is read once to find where each request stands and
// when it began, and then each is read where it stands. What is held is some 60
// bytes a request, and 50 a session.
type dynamo struct {
	files    []*textFile
	texts    texts
	notes    *notes
	recorded bool // RecordedTimes
	size     int  // of blocks, 0 where none is known
	sizeAt   string

	file    int    // that is being read the first time
	name    string // of the file that line is in
	begun   bool   // reading it
	indexed bool   // all of them
	stopped error  // reading them, to be told once
	spots   []dynamoSpot
	origin  float64            // ms since 1970
	ends    map[uint64]float64 // of the turns before, by session
	ids     []uint64
	raw     []byte
	line    int
}

// dynamoSpot is where a request stands, and when it ran.
type dynamoSpot struct {
	begin, end   float64 // ms since 1970, NaN where they are not known
	offset       int64
	length, line int32
	file         int32
}

// BlockSize is the tokens of a block, 0 where no request says it.
func (d *dynamo) BlockSize() int {
	d.prepare()
	return d.size
}

func (d *dynamo) Line() int { return d.line }

func (d *dynamo) File() string { return d.name }

func (d *dynamo) Close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(append(errs, d.texts.Close())...)
}

func (d *dynamo) Read(r *trace.Request) error {
	if d.prepare(); d.stopped != nil {
		err := d.stopped
		d.stopped = nil
		return err
	}
	if len(d.spots) == 0 {
		return io.EOF
	}
	s := &d.spots[0]
	d.spots = d.spots[1:]
	d.name, d.line = d.files[s.file].name, int(s.line)
	d.ids = r.HashIDs
	row, err := d.readAt(s)
	if err != nil {
		return &trace.RowError{File: d.name, Line: d.line, Err: trace.ReadError{Err: err}}
	}
	*r = row
	d.time(r, s)
	return nil
}

// readAt reads the request that stands at a spot. What it is noted for was
// noted before.
func (d *dynamo) readAt(s *dynamoSpot) (trace.Request, error) {
	d.raw = slices.Grow(d.raw[:0], int(s.length))[:s.length]
	if err := d.texts.readAt(d.files[s.file], d.raw, s.offset); err != nil {
		return trace.Request{}, err
	}
	noted := d.notes
	d.notes = &notes{}
	p, err := d.parse(d.raw)
	d.notes = noted
	if err != nil {
		err = fmt.Errorf("the file changed while it was read: %w", err)
	}
	return p.row, err
}

// prepare reads on to the end, or to the next line that stops it.
func (d *dynamo) prepare() {
	if d.indexed || d.stopped != nil {
		return
	}
	if d.stopped = d.index(); d.stopped == nil {
		d.indexed = true
		d.arrange()
	}
}

// index finds the requests of the lines that are left. After an error about a
// row it can be called again.
func (d *dynamo) index() error {
	for d.file < len(d.files) {
		f := d.files[d.file]
		if !d.begun {
			if err := f.begin(); err != nil {
				return err
			}
			d.begun, d.name = true, f.name
		}
		line, err := f.text.Line()
		d.line = f.text.Number()
		if err == io.EOF {
			if err := f.Close(); err != nil {
				return err
			}
			d.file++
			d.begun = false
			continue
		}
		if err == nil && len(line) > 0 {
			err = d.keep(f, line)
		}
		if err != nil {
			return &trace.RowError{File: f.name, Line: d.line, Err: err}
		}
	}
	return nil
}

// keep remembers where the request of a line stands, if it is one.
func (d *dynamo) keep(f *textFile, line []byte) error {
	p, err := d.parse(line)
	if err == errLeftOut {
		return nil
	}
	if err != nil {
		return mixed(err, line, Dynamo)
	}
	d.ids = p.row.HashIDs
	if d.line > math.MaxInt32 {
		return trace.ReadError{Err: fmt.Errorf("more than %d lines", math.MaxInt32)}
	}
	s := dynamoSpot{
		begin: p.begin, end: p.end, offset: f.base + f.text.At(),
		length: int32(len(line)), line: int32(d.line), file: int32(d.file),
	}
	if f.spooled {
		s.offset = d.texts.spool.size
		if _, err := d.texts.spool.Write(line); err != nil {
			return trace.ReadError{Err: err}
		}
	}
	d.spots = append(d.spots, s)
	return nil
}

// arrange puts the requests in order of arrival.
func (d *dynamo) arrange() {
	slices.SortStableFunc(d.spots, func(a, b dynamoSpot) int { return cmp.Compare(a.begin, b.begin) })
	if i := slices.IndexFunc(d.spots, func(s dynamoSpot) bool { return !math.IsNaN(s.begin) }); i >= 0 {
		d.origin = d.spots[i].begin
	}
	d.ends = map[uint64]float64{}
}

// time gives the next request its arrival, or the pause behind the turn before.
func (d *dynamo) time(r *trace.Request, s *dynamoSpot) {
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
		d.notes.count("turns that began before the turn before them had ended, which have their time instead of a delay")
	default:
		r.Delay, r.Timestamp = trace.Some(round(s.begin-before)), trace.Opt[float64]{}
	}
}

// round takes off what the sum of milliseconds since 1970 and of a duration
// cannot tell: it is exact to a microsecond.
func round(ms float64) float64 { return math.Round(ms*1000) / 1000 }
