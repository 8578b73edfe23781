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

// joinKey returns the hash of what joins an entry and its parts, 0 for nothing.
func joinKey(e *log.Entry) uint64 {
	if e.Joins == "" {
		return 0
	}
	return xxhash.Sum64String(e.Joins)
}

// joinParts finds the parts of each entry, in order of their times. Exporters write them
// before the entry, after it, or to another file.
func (l *requestLog) joinParts() {
	slices.SortStableFunc(l.parts, func(a, b spot[logged]) int {
		return cmp.Or(cmp.Compare(a.about.key, b.about.key), cmp.Compare(a.at, b.at))
	})
	joined := make([]bool, len(l.parts))
	answered := map[uint64]int{} // answers of a batch that have their request
	for i := range l.spots {
		s := &l.spots[i].about
		if s.key == 0 {
			continue
		}
		from, _ := slices.BinarySearchFunc(l.parts, s.key, func(p spot[logged], key uint64) int { return cmp.Compare(p.about.key, key) })
		if s.layout == log.Batch { // ids of requests may recur
			from += answered[s.key]
		}
		size := 0
		for s.from, s.to = from, from; s.to < len(l.parts) && l.parts[s.to].about.key == s.key && (s.layout != log.Batch || s.to == from); s.to++ {
			joined[s.to] = true
			size += int(l.parts[s.to].record.length)
		}
		switch {
		case s.layout == log.Batch && s.to == from:
			l.notes.count("requests of a batch without their answer")
		case s.layout == log.Batch:
			l.spots[i].at = l.parts[from].at
			answered[s.key]++
		case size > MaxRow:
			l.notes.count("requests whose log records have more than 64 MiB, read without them")
			s.to = s.from
		}
	}
	for i, p := range l.parts {
		switch {
		case joined[i]:
		case p.about.layout == log.Batch:
			l.notes.count("answers of a batch without their request: the folder of both files has all")
			p.about.key = 0
			l.spots = append(l.spots, p)
		default:
			l.notes.count("log records with messages of no request left out: its span is missing, and has the times and lengths")
		}
	}
	l.sort()
}

// parse parses the entry at a spot from raw, its first part, and the other parts.
func (l *requestLog) parse(raw []byte, s logged) (*log.Entry, error) {
	if s.to > s.from {
		raw = bytes.Clone(raw) // before the next part is read
	}
	var parts [][]byte
	for _, p := range l.parts[s.from:s.to] {
		part, err := l.records.read(p.record)
		if err != nil {
			return nil, err
		}
		parts = append(parts, bytes.Clone(part))
	}
	e, err := log.Parse(s.layout, raw, parts...)
	if err != nil {
		return nil, trace.ReadError{Err: errors.New("the file changed while it was read")}
	}
	return e, nil
}
