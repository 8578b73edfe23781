package runfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/jsonscan"
)

// fields lists the result-line fields that are not part of the trace row, for both
// writing and reading. Each line has a field's key, its place in the record, and
// when it is written, in the order of the file.
func (c *recordCodec) fields(r *replay.Record) {
	failed := r.Class != replay.OK
	c.int("row", &r.Row, true) // first: see firstField
	c.duration("due_ms", &r.Due, true)
	c.duration("ready_ms", &r.Ready, true)
	c.duration("connect_ms", &r.ConnectTime, r.ConnectTime != 0)
	c.instant("sent_ms", &r.Sent)
	c.instant("first_ms", &r.First)
	c.instant("first_visible_ms", &r.FirstVisible)
	c.flag("reasoning_only", &r.ReasoningOnly)
	c.instant("last_ms", &r.Last)
	c.isResult = c.duration("done_ms", &r.Done, true)
	c.count("input_tokens", &r.Counts.Input)
	c.count("output_tokens", &r.Counts.Output)
	c.count("cached_tokens", &r.Counts.Cached)
	c.count("reasoning_tokens", &r.Counts.Reasoning)
	c.int("chunks", &r.Chunks, true)
	c.ints("chunk_tokens", &r.ChunkTokens)
	c.durations("chunk_ms", &r.Gaps)
	c.text("stamps", (*string)(&r.Stamps), r.Stamps != "")
	c.duration("first_stamp_error_ms", &r.FirstStampError, r.FirstStampError != 0)
	c.duration("max_stamp_error_ms", &r.MaxStampError, r.MaxStampError != 0)
	c.int("target_index", &r.Target, r.Target != 0)
	c.text("requested_model", &r.Model, r.Model != "")
	c.count("base_row", &r.Base.Row)
	c.int("base_answer_tokens", &r.Base.Answer.Tokens, r.Base.Row.Set)
	c.int("base_dropped_tokens", &r.Base.Answer.Dropped, r.Base.Answer.Dropped != 0)
	c.int("retries", &r.Retries, r.Retries != 0)
	c.int("status", &r.Status, true)
	c.text("error", &r.Error, failed)
	c.text("error_class", (*string)(&r.Class), failed)
	c.flag("missing_done", &r.MissingDone)
}

// recordKeys holds the keys of all fields. A trace row has some of them if it is a
// result line itself.
var recordKeys = func() map[string]bool {
	c := recordCodec{mode: listing, keys: map[string]bool{}}
	c.fields(new(replay.Record))
	return c.keys
}()

// textKeys maps the keys of user text to the keys of their SHA-256, which replaces
// the text in results.
var textKeys = map[string]string{"messages": "messages_sha256", "text_input": "text_input_sha256"}

// AppendRecord appends the record as one JSON object without a newline: the trace
// row, then the result. The row's texts are replaced by their SHA-256 unless
// keepText is set.
func AppendRecord(dst []byte, rec replay.Record, keepText bool) ([]byte, error) {
	row := rec.Request
	var err error
	if len(row.Extra) > 0 && (row.Extra[0] != '{' || !utf8.Valid(row.Extra) || !json.Valid(row.Extra)) {
		return dst, fmt.Errorf("unknown keys are not a JSON object: %.60q", row.Extra)
	}
	row.Extra, err = extraOf(row.Extra, func(key string, raw []byte) (string, []byte) {
		if name, isText := textKeys[key]; isText && !keepText {
			return name, fmt.Appendf(nil, `"%x"`, sha256.Sum256(raw))
		}
		return key, raw
	})
	if err != nil {
		return dst, err
	}
	dst = format.AppendRow(dst, row)
	c := recordCodec{mode: writing, dst: dst[:len(dst)-1]} // without the closing brace
	c.fields(&rec)
	return append(c.dst, '}'), c.err
}

// The first field separates the trace row from the fields.
var (
	separator  = []byte(", ")
	firstField = []byte(`"row": `)
)

// arena is memory shared by records, so that reading them rarely allocates. Slices
// that were handed out are not written again.
type arena struct {
	values int // of an allocation
	gaps   []time.Duration
	ids    []uint64
}

// newArena returns the memory for the records in a text of some bytes.
func newArena(text int) arena { return arena{values: max(text/16, 256)} }

// few reports whether so few values are left that memory is to be allocated.
func (a *arena) few(left int) bool { return left < max(a.values/16, 1) }

// scanRecord is a fast reader for result lines in the layout of [AppendRecord]. It
// returns false for any other line, which needs [parseRecord].
//
// firstField cannot be part of a string, where quotes are escaped. If it is in an
// object inside the row, the text before it does not parse.
func scanRecord(line []byte, rec *replay.Record, a *arena) bool {
	first := bytes.Index(line, firstField) // a quote is rarer than the separator's comma
	end := first - len(separator)
	if end < 0 || !bytes.Equal(line[end:first], separator) {
		return false
	}
	if a.few(cap(a.ids) - len(a.ids)) {
		a.ids = make([]uint64, 0, a.values)
	}
	if a.few(cap(a.gaps) - len(a.gaps)) {
		a.gaps = make([]time.Duration, 0, a.values)
	}
	*rec = replay.Record{}
	rec.HashIDs = a.ids[len(a.ids):]
	line[end] = '}' // temporarily, to parse the row alone
	err := format.ParseRow(line[:end+1], &rec.Request)
	line[end] = separator[0]
	if err != nil || hasRecordKey(&rec.Request) {
		return false
	}
	if n := len(rec.HashIDs); n <= cap(a.ids)-len(a.ids) { // otherwise it was allocated separately
		a.ids = a.ids[:len(a.ids)+n]
		rec.HashIDs = rec.HashIDs[:n:n]
	}
	c := recordCodec{mode: scanning, Cursor: jsonscan.New(line[first:]), arena: a}
	c.next = c.Key()
	c.fields(rec)
	return c.isResult && c.next == nil && c.Done()
}

// hasRecordKey reports whether the row also has keys of a record.
func hasRecordKey(row *trace.Request) (found bool) {
	err := jsonscan.Members(row.Extra, func(key []byte, _ int, _ []byte) error {
		found = found || recordKeys[string(key)]
		return nil
	})
	return found || err != nil
}

// extraOf returns the unknown keys of a row without those of a record, each as edit returns it.
func extraOf(row []byte, edit func(key string, raw []byte) (string, []byte)) ([]byte, error) {
	var kept jsonscan.Object
	err := jsonscan.Members(row, func(key []byte, _ int, raw []byte) error {
		if !recordKeys[string(key)] {
			kept.Add(edit(string(key), raw))
		}
		return nil
	})
	return kept.Bytes(), err
}

// parseRecord reads a result line in any layout, given the line parsed as a trace
// row.
func parseRecord(row trace.Request) (replay.Record, error) {
	rec := replay.Record{}
	c := recordCodec{mode: decoding}
	if len(row.Extra) > 0 {
		if err := jsonscan.Strict.Unmarshal(row.Extra, &c.members); err != nil {
			return rec, fmt.Errorf("result line does not decode: %w", jsonscan.Fault(err))
		}
	}
	c.fields(&rec)
	if c.err != nil {
		return rec, fmt.Errorf("result line does not decode: %w", c.err)
	}
	if !c.isResult {
		return rec, fmt.Errorf("not a result line: no done_ms")
	}
	extra, err := extraOf(row.Extra, func(key string, raw []byte) (string, []byte) { return key, raw })
	if err != nil {
		return rec, err
	}
	rec.Request = row
	rec.Extra = extra
	return rec, nil
}

// recordCodec performs one of several operations on the [recordCodec.fields] of a
// record.
type recordCodec struct {
	mode     codecMode
	isResult bool  // done_ms was present
	err      error // first error

	dst []byte // writing: the output so far

	jsonscan.Cursor        // scanning: positioned after the key next
	next            []byte // the key of the next field; nil after the last one
	arena           *arena

	members map[string]json.RawMessage // decoding
	keys    map[string]bool            // listing
}

type codecMode uint8

const (
	writing  codecMode = iota // to dst
	scanning                  // the fields in the order of their list, from the cursor
	decoding                  // the fields in any order, from members
	listing                   // their keys
)

// ISLEstimated reports whether the prompt is text from the trace with an estimated
// ISL, which cannot be compared with the server's count. Generated prompts have
// exactly the ISL of their row.
func ISLEstimated(r *replay.Record) bool {
	if !bytes.Contains(r.Extra, []byte(`"estimated"`)) {
		return false
	}
	if lengths, _ := r.Raw("estimated"); !strings.Contains(lengths, `"input_length"`) {
		return false
	}
	for key, digest := range textKeys {
		_, text := r.Raw(key)
		if _, hashed := r.Raw(digest); text || hashed {
			return true
		}
	}
	return false
}

// begin starts a field. It reports whether the field is to be written or scanned;
// raw is the value to decode, nil if there is none.
func (c *recordCodec) begin(key string, write bool) (ok bool, raw []byte) {
	switch c.mode {
	case scanning:
		return string(c.next) == key, nil
	case writing:
		if write {
			c.dst = append(append(append(c.dst, `, "`...), key...), `": `...)
		}
		return write, nil
	case decoding:
		if raw = c.members[key]; string(raw) == "null" {
			raw = nil
		}
		return false, raw
	}
	c.keys[key] = true
	return false, nil
}

// end finishes a scanned field.
func (c *recordCodec) end() {
	c.next = nil
	if c.More('}') {
		c.next = c.Key()
	}
}

// decode decodes a value. It returns the value because a pointer into the record
// would force the record onto the heap.
func decode[T any](c *recordCodec, raw []byte) (v T) {
	if err := jsonscan.Strict.Unmarshal(raw, &v); err != nil && c.err == nil {
		c.err = jsonscan.Fault(err)
	}
	return v
}

// check fails the decoding of a value that is out of range.
func (c *recordCodec) check(key string, inRange bool) {
	if !inRange && c.err == nil {
		c.err = fmt.Errorf("%s is out of range", key)
	}
}

// decodeDuration returns milliseconds as a duration.
func (c *recordCodec) decodeDuration(key string, ms float64) time.Duration {
	inRange := math.Abs(ms) <= float64(maxTime/time.Millisecond)
	if c.check(key, inRange); !inRange {
		return 0
	}
	return replay.Milliseconds(ms)
}

// int handles a field with an integer from 0 to 2^31-1. Like all field methods it reports whether
// the field was present.
func (c *recordCodec) int(key string, n *int, write bool) bool {
	ok, raw := c.begin(key, write)
	switch {
	case raw != nil:
		*n = int(decode[int32](c, raw))
		c.check(key, *n >= 0)
	case ok && c.mode == writing:
		c.dst = strconv.AppendInt(c.dst, int64(*n), 10)
	case ok:
		*n = c.Int(math.MaxInt32)
		c.end()
	}
	return ok || raw != nil
}

// flag handles a field that is written only if true.
func (c *recordCodec) flag(key string, v *bool) {
	ok, raw := c.begin(key, *v)
	switch {
	case raw != nil:
		*v = decode[bool](c, raw)
	case ok && c.mode == writing:
		c.dst = append(c.dst, "true"...)
	case ok:
		*v = true
		c.True()
		c.end()
	}
}

func (c *recordCodec) count(key string, n *trace.Opt[int]) {
	n.Set = c.int(key, &n.Value, n.Set)
}

// duration handles a field in milliseconds.
func (c *recordCodec) duration(key string, d *time.Duration, write bool) bool {
	ok, raw := c.begin(key, write)
	switch {
	case raw != nil:
		*d = c.decodeDuration(key, decode[float64](c, raw))
	case ok && c.mode == writing:
		c.dst = appendDuration(c.dst, *d)
	case ok:
		*d = c.milliseconds()
		c.end()
	}
	return ok || raw != nil
}

func (c *recordCodec) instant(key string, at *replay.Instant) {
	at.Set = c.duration(key, &at.Value, at.Set)
}

// durations handles an array field that is omitted if empty.
func (c *recordCodec) durations(key string, all *[]time.Duration) {
	ok, raw := c.begin(key, len(*all) > 0)
	switch {
	case raw != nil:
		for _, ms := range decode[[]float64](c, raw) {
			*all = append(*all, c.decodeDuration(key, ms))
		}
	case ok && c.mode == writing:
		dst := append(c.dst, '[')
		for i, d := range *all {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendDuration(dst, d)
		}
		c.dst = append(dst, ']')
	case ok:
		*all = c.scanDurations()
		c.end()
	}
}

// ints handles an array field that is omitted if empty.
func (c *recordCodec) ints(key string, all *[]int32) {
	ok, raw := c.begin(key, len(*all) > 0)
	switch {
	case raw != nil:
		*all = decode[[]int32](c, raw)
		c.check(key, len(*all) == 0 || slices.Min(*all) >= 0)
	case ok && c.mode == writing:
		dst := append(c.dst, '[')
		for i, n := range *all {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = strconv.AppendInt(dst, int64(n), 10)
		}
		c.dst = append(dst, ']')
	case ok:
		for more := c.Open('['); more; more = c.More(']') {
			*all = append(*all, int32(c.Int(math.MaxInt32)))
		}
		c.end()
	}
}

// scanDurations reads an array into the arena.
func (c *recordCodec) scanDurations() []time.Duration {
	all := c.arena.gaps
	start := len(all)
	more := c.Open('[')
	if !more { // empty arrays are never written
		c.Fail()
	}
	for ; more; more = c.More(']') {
		all = append(all, c.milliseconds())
	}
	c.arena.gaps = all
	return all[start:len(all):len(all)]
}

func (c *recordCodec) text(key string, s *string, write bool) {
	ok, raw := c.begin(key, write)
	switch {
	case raw != nil:
		*s = decode[string](c, raw)
	case ok && c.mode == writing:
		c.dst = c.appendText(*s)
	case ok:
		*s = internText(c.PlainText())
		c.end()
	}
}

// appendText appends a string to dst, without allocating for plain ones.
func (c *recordCodec) appendText(s string) []byte {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return append(append(append(c.dst, '"'), s...), '"')
	}
	text, err := jsonscan.Strict.Marshal(s)
	if err != nil && c.err == nil {
		c.err = err
	}
	return append(c.dst, text...)
}

// internText returns text as a string, without allocating for the most common
// ones.
func internText(text []byte) string {
	for _, s := range [...]replay.Stamps{replay.KernelStamps, replay.ClientStamps} {
		if string(text) == string(s) {
			return string(s)
		}
	}
	return string(text)
}

// appendDuration appends milliseconds with up to six decimals, using integers: a
// float64 with more than 15 digits would not round-trip. Gaps make up most of a
// record.
func appendDuration(dst []byte, d time.Duration) []byte {
	if d < 0 {
		dst, d = append(dst, '-'), -d
	}
	dst = strconv.AppendInt(dst, int64(d/time.Millisecond), 10)
	decimals := int(d % time.Millisecond)
	if decimals == 0 {
		return dst
	}
	digits := [7]byte{0: '.'}
	for i := 6; i > 0; i-- {
		digits[i] = byte('0' + decimals%10)
		decimals /= 10
	}
	return append(dst, bytes.TrimRight(digits[:], "0")...)
}

// nanoseconds holds, by number of decimals, the value of the last decimal of a
// number in milliseconds and the most of them in maxTime.
var nanoseconds = [7]struct{ unit, most int64 }{
	{1_000_000, int64(maxTime) / 1_000_000}, {100_000, int64(maxTime) / 100_000}, {10_000, int64(maxTime) / 10_000},
	{1_000, int64(maxTime) / 1_000}, {100, int64(maxTime) / 100}, {10, int64(maxTime) / 10}, {1, int64(maxTime)},
}

// milliseconds reads milliseconds with up to six decimals.
func (c *recordCodec) milliseconds() time.Duration {
	n, places := c.Decimal()
	if places >= len(nanoseconds) || n > nanoseconds[places].most || n < -nanoseconds[places].most {
		c.Fail()
		return 0
	}
	return time.Duration(n * nanoseconds[places].unit)
}
