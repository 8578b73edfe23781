package runfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

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
	row.Extra, err = format.FilterExtra(&row, func(key, raw string) (string, string, bool) {
		if name, isText := textKeys[key]; isText && !keepText {
			return name, fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(raw))), true
		}
		return key, raw, !recordKeys[key]
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
func hasRecordKey(row *trace.Request) bool {
	if len(row.Extra) == 0 {
		return false
	}
	found := false
	_, err := format.FilterExtra(row, func(key, raw string) (string, string, bool) {
		found = found || recordKeys[key]
		return key, raw, false
	})
	return found || err != nil
}

// parseRecord reads a result line in any layout, given the line parsed as a trace
// row.
func parseRecord(row trace.Request) (replay.Record, error) {
	rec := replay.Record{}
	c := recordCodec{mode: decoding}
	if len(row.Extra) > 0 {
		if err := jsonscan.Strict.Unmarshal(row.Extra, &c.members); err != nil {
			return rec, fmt.Errorf("result line does not decode: %.100q", err.Error())
		}
	}
	c.fields(&rec)
	if c.err != nil {
		return rec, fmt.Errorf("result line does not decode: %.100q", c.err.Error())
	}
	if !c.isResult {
		return rec, fmt.Errorf("not a result line: no done_ms")
	}
	extra, err := format.FilterExtra(&row, func(key, raw string) (string, string, bool) { return key, raw, !recordKeys[key] })
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
		if _, ok := r.Raw(key); ok {
			return true
		}
		if _, ok := r.Raw(digest); ok {
			return true
		}
	}
	return false
}
