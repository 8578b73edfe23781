package runfile

import (
	"bytes"
	"math"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/jsonscan"
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
	s := recordScanner{Cursor: jsonscan.New(line[end+len(", "):]), arena: a}
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
	jsonscan.Cursor
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

// members reads them to the end of the line, which is the end of the object.
func (s *recordScanner) members(rec *replay.Record) bool {
	for more := true; more; more = s.More('}') {
		s.member(s.Key(), rec)
	}
	return s.Done() && s.seen&seenDone != 0
}

// member reads the value of a key.
func (s *recordScanner) member(key []byte, rec *replay.Record) {
	switch string(key) {
	case "row":
		s.int(seenRow, &rec.Row)
	case "due_ms":
		s.duration(seenDue, &rec.Due)
	case "ready_ms":
		s.duration(seenReady, &rec.Ready)
	case "opening_ms":
		s.duration(seenOpening, &rec.ConnectTime)
	case "sent_ms":
		s.instant(seenSent, &rec.Sent)
	case "first_ms":
		s.instant(seenFirst, &rec.First)
	case "last_ms":
		s.instant(seenLast, &rec.Last)
	case "done_ms":
		s.duration(seenDone, &rec.Done)
	case "input_tokens":
		s.count(seenInput, &rec.Counts.Input)
	case "output_tokens":
		s.count(seenOutput, &rec.Counts.Output)
	case "cached_tokens":
		s.count(seenCached, &rec.Counts.Cached)
	case "chunks":
		s.int(seenChunks, &rec.Chunks)
	case "chunk_ms":
		s.gaps(rec)
	case "first_blur_ms":
		s.duration(seenFirstBlur, &rec.FirstStampError)
	case "blur_ms":
		s.duration(seenBlur, &rec.MaxStampError)
	case "target_index":
		s.int(seenTarget, &rec.Target)
	case "retries":
		s.int(seenRetries, &rec.Retries)
	case "status":
		s.int(seenStatus, &rec.Status)
	case "stamps":
		s.Once(&s.seen, seenStamps)
		rec.Stamps = replay.Stamps(known(s.PlainText(), string(replay.KernelStamps), string(replay.ClientStamps)))
	case "error":
		s.Once(&s.seen, seenError)
		rec.Error = string(s.PlainText())
	case "error_class":
		s.Once(&s.seen, seenClass)
		rec.Class = replay.Class(s.PlainText())
	default:
		s.Fail()
	}
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

func (s *recordScanner) int(bit uint32, to *int) {
	s.Once(&s.seen, bit)
	*to = s.Int(math.MaxInt32)
}

func (s *recordScanner) count(bit uint32, to *trace.Opt[int]) {
	to.Set = true
	s.int(bit, &to.Value)
}

func (s *recordScanner) instant(bit uint32, to *replay.Instant) {
	to.Set = true
	s.duration(bit, &to.Value)
}

func (s *recordScanner) duration(bit uint32, to *time.Duration) {
	s.Once(&s.seen, bit)
	*to = s.ms()
}

// nanoseconds of the last decimal of a number of milliseconds, by how many
// decimals there are.
var nanoseconds = [7]int64{1_000_000, 100_000, 10_000, 1_000, 100, 10, 1}

// ms reads milliseconds with up to six decimals.
func (s *recordScanner) ms() time.Duration {
	n, places := s.Decimal()
	if places >= len(nanoseconds) || n > math.MaxInt64/nanoseconds[places] || n < -math.MaxInt64/nanoseconds[places] {
		s.Fail()
		return 0
	}
	return time.Duration(n * nanoseconds[places])
}

// gaps reads an array of times.
func (s *recordScanner) gaps(rec *replay.Record) {
	s.Once(&s.seen, seenGaps)
	all := s.arena.gaps
	start := len(all)
	more := s.Open('[')
	if !more { // AppendRecord writes no empty array
		s.Fail()
	}
	for ; more; more = s.More(']') {
		all = append(all, s.ms())
	}
	rec.Gaps = all[start:len(all):len(all)]
	s.arena.gaps = all
}
