package format

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
	"moontide/trace/log"
)

// logRecord is where a log record is that has messages of a span. Exporters write them
// apart from the spans: before, after, or to another file.
type logRecord struct {
	span uint64 // hash of its name
	at   int64  // time in ns
	place
	joined bool
}

// spanHash returns the hash of the name of a span, 0 for none.
func spanHash(name string) uint64 {
	if name == "" {
		return 0
	}
	return xxhash.Sum64String(name)
}

// keepRecord keeps the place of a log record.
func (l *requestLog) keepRecord(s *spot[logged], e *log.Entry) {
	at := int64(0)
	if !e.Begin.IsZero() {
		at = e.Begin.UnixNano()
	}
	l.records = append(l.records, logRecord{span: spanHash(e.Span), at: at, place: place{s.file, s.offset, s.length}})
}

// joinRecords finds the log records of each span, in order of their times.
func (l *requestLog) joinRecords() {
	slices.SortStableFunc(l.records, func(a, b logRecord) int {
		return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(a.at, b.at))
	})
	for i := range l.spots {
		s := &l.spots[i].about
		if s.span == 0 {
			continue
		}
		from, _ := slices.BinarySearchFunc(l.records, s.span, func(r logRecord, span uint64) int { return cmp.Compare(r.span, span) })
		size := 0
		for s.from, s.to = from, from; s.to < len(l.records) && l.records[s.to].span == s.span; s.to++ {
			l.records[s.to].joined = true
			size += int(l.records[s.to].length)
		}
		if size > MaxRow {
			l.notes.count("requests whose log records have more than 64 MiB, read without them")
			s.to = s.from
		}
	}
	alone := 0
	for _, r := range l.records {
		if !r.joined {
			alone++
		}
	}
	if alone > 0 {
		l.notes.countMany("log records with messages of no request left out: its span is missing, and has the times and lengths", alone)
	}
}

// parse parses the entry at a spot, of which raw is the first part, with its others.
func (l *requestLog) parse(raw []byte, s logged) (*log.Entry, error) {
	if s.answer.file != nil || s.to > s.from {
		raw = bytes.Clone(raw) // before the next part is read
	}
	var records [][]byte
	for _, r := range l.records[s.from:s.to] {
		record, err := l.readAt(r.file, r.offset, r.length)
		if err != nil {
			return nil, trace.ReadError{Err: err}
		}
		records = append(records, bytes.Clone(record))
	}
	e, err := log.Parse(s.layout, raw, records...)
	if err == nil && s.answer.file != nil {
		var other *log.Entry
		if raw, err = l.readAt(s.answer.file, s.answer.offset, s.answer.length); err == nil {
			other, err = log.Parse(s.layout, raw)
		}
		if err == nil {
			e.Join(other)
		}
	}
	if err != nil {
		return nil, trace.ReadError{Err: errors.New("the file changed while it was read")}
	}
	return e, nil
}
