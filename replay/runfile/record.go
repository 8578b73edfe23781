package runfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/jsonscan"
)

// fields is the table of what a result line has beside its trace row: it writes
// and reads all of them. A field is one line: its key, its place in the record,
// and when it is written. Their order is that of the file. Keys of older
// versions are read too.
func (c *recordCodec) fields(r *replay.Record) {
	failed := r.Class != replay.OK
	c.int("row", &r.Row, true) // first: see rowEnd
	c.duration("due_ms", "", &r.Due, true)
	c.duration("ready_ms", "", &r.Ready, true)
	c.duration("connect_ms", "opening_ms", &r.ConnectTime, r.ConnectTime != 0)
	c.instant("sent_ms", &r.Sent)
	c.instant("first_ms", &r.First)
	c.instant("last_ms", &r.Last)
	c.isResult = c.duration("done_ms", "", &r.Done, true)
	c.count("input_tokens", &r.Counts.Input)
	c.count("output_tokens", &r.Counts.Output)
	c.count("cached_tokens", &r.Counts.Cached)
	c.int("chunks", &r.Chunks, true)
	c.durations("chunk_ms", &r.Gaps)
	c.text("stamps", (*string)(&r.Stamps), r.Stamps != "")
	c.duration("first_stamp_error_ms", "first_blur_ms", &r.FirstStampError, r.FirstStampError != 0)
	c.duration("max_stamp_error_ms", "blur_ms", &r.MaxStampError, r.MaxStampError != 0)
	c.int("target_index", &r.Target, r.Target != 0)
	c.int("retries", &r.Retries, r.Retries != 0)
	c.int("status", &r.Status, true)
	c.text("error", &r.Error, failed)
	c.text("error_class", (*string)(&r.Class), failed)
}

// recordKeys are the keys of all fields. A trace row has some where it is itself
// a result line.
var recordKeys = func() map[string]bool {
	c := recordCodec{mode: listing, keys: map[string]bool{}}
	c.fields(new(replay.Record))
	return c.keys
}()

// textKeys hold what users wrote. A result keeps only their SHA-256.
var textKeys = map[string]string{"messages": "messages_sha256", "text_input": "text_input_sha256"}

// AppendRecord appends the record as one JSON object without a line end: the
// trace row, then what happened. Texts of the row are replaced by their SHA-256
// unless keepText.
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

// rowEnd stands between the trace row and the fields.
var rowEnd = []byte(`, "row": `)

// arena is memory that records share, so that reading them seldom allocates.
// What was handed out is never written again.
type arena struct {
	gaps []time.Duration
	ids  []uint64
}

const (
	arenaSize = 1 << 14 // values in one piece of an arena
	arenaLeft = 1 << 10 // with less room left, the next piece is begun
)

// scanRecord reads a result line in the layout of [AppendRecord], fast. It
// returns false for any other line, which is for [parseRecord].
//
// rowEnd cannot be part of a string, where quotes are escaped. If it is in an
// object inside the row, what stands before it does not parse.
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
	line[end] = '}' // for a moment, to parse the row alone
	err := format.ParseRow(line[:end+1], &rec.Request)
	line[end] = rowEnd[0]
	if err != nil || hasRecordKey(&rec.Request) {
		return false
	}
	if n := len(rec.HashIDs); n <= cap(a.ids)-len(a.ids) { // else it has an array of its own
		a.ids = a.ids[:len(a.ids)+n]
		rec.HashIDs = rec.HashIDs[:n:n]
	}
	c := recordCodec{mode: scanning, Cursor: jsonscan.New(line[end+len(", "):]), arena: a}
	c.next = c.Key()
	c.fields(rec)
	return c.isResult && c.next == nil && c.Done()
}

// hasRecordKey reports whether the row has fields of a record too.
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

// parseRecord reads a result line in any layout from the trace row that it also
// is.
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

// recordCodec does one of several things with the [recordCodec.fields] of a
// record.
type recordCodec struct {
	mode     codecMode
	isResult bool  // done_ms was there
	err      error // the first

	dst []byte // writing: after the last field

	jsonscan.Cursor        // scanning: after the key next
	next            []byte // the key of the next field; nil after the last one
	arena           *arena

	members map[string]json.RawMessage // decoding
	keys    map[string]bool            // listing
}

type codecMode uint8

const (
	writing  codecMode = iota // to dst
	scanning                  // the fields in the order of their table, from the cursor
	decoding                  // the fields in any order, from members
	listing                   // their keys
)
