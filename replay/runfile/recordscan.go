package runfile

import (
	"bytes"
	"math"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/format"
)

// arena is memory that records share, so that reading them allocates seldom. What
// was handed out is never written again.
type arena struct {
	gaps []time.Duration
	ids  []uint64
}

const (
	arenaSize = 1 << 14 // values in a piece of an arena
	arenaLeft = 1 << 10 // fewer are not worth beginning with
)

// rowEnd is what [AppendRecord] puts between the trace row and what happened.
var rowEnd = []byte(`, "row": `)

// scanRecord reads a result line as AppendRecord spells it. A line that it does
// not take in full (false) is for [parseRecord], which knows all spellings.
//
// The text of rowEnd cannot be part of a string, whose quotes would be escaped.
// If it is in an object inside of the row, what stands before it is no object.
func scanRecord(line []byte, rec *replay.Record, a *arena) bool {
	end := bytes.Index(line, rowEnd)
	if end < 0 {
		return false
	}
	if cap(a.ids)-len(a.ids) < arenaLeft {
		a.ids = make([]uint64, 0, arenaSize)
	}
	if cap(a.gaps)-len(a.gaps) < arenaLeft {
		a.gaps = make([]time.Duration, 0, arenaSize)
	}
	*rec = replay.Record{}
	rec.HashIDs = a.ids[len(a.ids):]
	// The row has to end: for a moment, its end stands in the place of what
	// follows it.
	line[end] = '}'
	err := format.ParseRow(line[:end+1], &rec.Request)
	line[end] = rowEnd[0]
	if err != nil {
		return false
	}
	if hasRecordKey(&rec.Request) {
		return false
	}
	if n := len(rec.HashIDs); n <= cap(a.ids)-len(a.ids) { // else it has an array of its own
		a.ids = a.ids[:len(a.ids)+n]
		rec.HashIDs = rec.HashIDs[:n:n]
	}
	s := recordScanner{b: line, i: end + len(", "), arena: a}
	return s.members(rec)
}

// hasRecordKey reports whether what happened is told among the members of the
// row, too.
func hasRecordKey(row *trace.Request) bool {
	found := false
	if len(row.Extra) == 0 {
		return false
	}
	_, err := format.FilterExtra(row, func(key, raw string) (string, string, bool) {
		found = found || recordKeys[key]
		return key, raw, false
	})
	return found || err != nil
}

// recordScanner reads the members that a trace row does not have.
type recordScanner struct {
	b     []byte
	i     int
	seen  uint32
	arena *arena
}

// Bits of the members that may come once.
const (
	seenRow = 1 << iota
	seenDue
	seenReady
	seenOpening
	seenSent
	seenFirst
	seenLast
	seenDone
	seenInput
	seenOutput
	seenCached
	seenChunks
	seenGaps
	seenStamps
	seenFirstBlur
	seenBlur
	seenTarget
	seenRetries
	seenStatus
	seenError
	seenClass
)

func (s *recordScanner) members(rec *replay.Record) bool {
	for {
		key, ok := s.text()
		if !ok || !s.take(": ") {
			return false
		}
		if ok = s.member(key, rec); !ok {
			return false
		}
		if s.i == len(s.b)-1 && s.b[s.i] == '}' {
			return s.seen&seenDone != 0
		}
		if !s.take(", ") {
			return false
		}
	}
}

// member reads the value of a key.
func (s *recordScanner) member(key []byte, rec *replay.Record) bool {
	switch string(key) {
	case "row":
		return s.int(seenRow, &rec.Row)
	case "due_ms":
		return s.duration(seenDue, &rec.Due)
	case "ready_ms":
		return s.duration(seenReady, &rec.Ready)
	case "opening_ms":
		return s.duration(seenOpening, &rec.Opening)
	case "sent_ms":
		return s.instant(seenSent, &rec.Sent)
	case "first_ms":
		return s.instant(seenFirst, &rec.First)
	case "last_ms":
		return s.instant(seenLast, &rec.Last)
	case "done_ms":
		return s.duration(seenDone, &rec.Done)
	case "input_tokens":
		return s.count(seenInput, &rec.Counts.Input)
	case "output_tokens":
		return s.count(seenOutput, &rec.Counts.Output)
	case "cached_tokens":
		return s.count(seenCached, &rec.Counts.Cached)
	case "chunks":
		return s.int(seenChunks, &rec.Chunks)
	case "chunk_ms":
		return s.gaps(rec)
	case "first_blur_ms":
		return s.duration(seenFirstBlur, &rec.FirstBlur)
	case "blur_ms":
		return s.duration(seenBlur, &rec.Blur)
	case "target_index":
		return s.int(seenTarget, &rec.Target)
	case "retries":
		return s.int(seenRetries, &rec.Retries)
	case "status":
		return s.int(seenStatus, &rec.Status)
	}
	return s.words(key, rec)
}

// words reads the value of a key that is text.
func (s *recordScanner) words(key []byte, rec *replay.Record) bool {
	text, ok := s.text()
	if !ok {
		return false
	}
	switch string(key) {
	case "stamps":
		rec.Stamps = replay.Stamps(known(text, string(replay.KernelStamps), string(replay.ClientStamps)))
		return s.once(seenStamps)
	case "error":
		rec.Error = string(text)
		return s.once(seenError)
	case "error_class":
		rec.Class = replay.Class(text)
		return s.once(seenClass)
	}
	return false
}

// known is a text that mostly is one of a few, for which there is memory.
func known(text []byte, few ...string) string {
	for _, s := range few {
		if string(text) == s {
			return s
		}
	}
	return string(text)
}

// once reports whether a member comes for the first time.
func (s *recordScanner) once(bit uint32) bool {
	first := s.seen&bit == 0
	s.seen |= bit
	return first
}

func (s *recordScanner) take(text string) bool {
	if len(s.b)-s.i < len(text) || string(s.b[s.i:s.i+len(text)]) != text {
		return false
	}
	s.i += len(text)
	return true
}

// text reads a string of printable ASCII without escapes.
func (s *recordScanner) text() ([]byte, bool) {
	if !s.take(`"`) {
		return nil, false
	}
	for start := s.i; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], true
		case c < 0x20 || c > 0x7e || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

// mostDigits keeps numbers far from overflowing, also as nanoseconds.
const mostDigits = 12

// digits reads an unsigned number without leading zeros.
func (s *recordScanner) digits() (n int64, ok bool) {
	b, i := s.b, s.i
	for i < len(b) {
		d := b[i] - '0'
		if d > 9 {
			break
		}
		n = n*10 + int64(d)
		if i++; i-s.i > mostDigits {
			return 0, false
		}
	}
	width := i - s.i
	leading := width > 1 && b[s.i] == '0'
	s.i = i
	return n, width > 0 && !leading
}

func (s *recordScanner) int(bit uint32, to *int) bool {
	n, ok := s.digits()
	*to = int(n)
	return ok && n <= math.MaxInt32 && s.once(bit)
}

func (s *recordScanner) count(bit uint32, to *trace.Opt[int]) bool {
	to.Set = true
	return s.int(bit, &to.Value)
}

func (s *recordScanner) instant(bit uint32, to *replay.Instant) bool {
	to.Set = true
	return s.duration(bit, &to.Value)
}

func (s *recordScanner) duration(bit uint32, to *time.Duration) bool {
	ok := false
	*to, ok = s.ms()
	return ok && s.once(bit)
}

// weights are the nanoseconds of the decimals of a millisecond, by how many
// decimals there are.
var weights = [7]int64{0, 100_000, 10_000, 1_000, 100, 10, 1}

// ms reads milliseconds with up to six decimals.
func (s *recordScanner) ms() (time.Duration, bool) {
	minus := s.take("-")
	n, ok := s.digits()
	if !ok {
		return 0, false
	}
	ns := n * int64(time.Millisecond)
	if s.i < len(s.b) && s.b[s.i] == '.' {
		b, i := s.b, s.i+1
		decimals := int64(0)
		for i < len(b) {
			d := b[i] - '0'
			if d > 9 {
				break
			}
			decimals = decimals*10 + int64(d)
			if i++; i-s.i > 7 {
				return 0, false
			}
		}
		width := i - s.i - 1
		if width == 0 {
			return 0, false
		}
		ns += decimals * weights[width]
		s.i = i
	}
	if minus {
		ns = -ns
	}
	return time.Duration(ns), true
}

// gaps reads an array of times.
func (s *recordScanner) gaps(rec *replay.Record) bool {
	if !s.take("[") || !s.once(seenGaps) {
		return false
	}
	all := s.arena.gaps
	start := len(all)
	for {
		gap, ok := s.ms()
		if !ok {
			return false
		}
		all = append(all, gap)
		if s.take(", ") {
			continue
		}
		rec.Gaps = all[start:len(all):len(all)]
		s.arena.gaps = all
		return s.take("]")
	}
}
