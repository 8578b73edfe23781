package runfile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"strconv"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/jsonscan"
)

// recordLine is the part of a result line that the trace row does not have.
type recordLine struct {
	Row          int           `json:"row"`
	DueMS        float64       `json:"due_ms"`
	ReadyMS      float64       `json:"ready_ms"`
	OpeningMS    float64       `json:"opening_ms"`
	SentMS       *float64      `json:"sent_ms"`
	FirstMS      *float64      `json:"first_ms"`
	LastMS       *float64      `json:"last_ms"`
	DoneMS       *float64      `json:"done_ms"` // absent: not a result line
	InputTokens  *int          `json:"input_tokens"`
	OutputTokens *int          `json:"output_tokens"`
	CachedTokens *int          `json:"cached_tokens"`
	Chunks       int           `json:"chunks"`
	ChunkMS      []float64     `json:"chunk_ms"`
	Stamps       replay.Stamps `json:"stamps"`
	FirstBlurMS  float64       `json:"first_blur_ms"`
	BlurMS       float64       `json:"blur_ms"`
	Target       int           `json:"target_index"`
	Retries      int           `json:"retries"`
	Status       int           `json:"status"`
	Error        string        `json:"error"`
	ErrorClass   replay.Class  `json:"error_class"`
}

// recordKeys are the keys of a result line that a trace row might bring along
// when the row itself is of an earlier run.
var recordKeys = map[string]bool{
	"row": true, "due_ms": true, "ready_ms": true, "opening_ms": true, "sent_ms": true, "first_ms": true, "last_ms": true, "done_ms": true,
	"input_tokens": true, "output_tokens": true, "cached_tokens": true, "chunks": true, "chunk_ms": true, "stamps": true, "first_blur_ms": true, "blur_ms": true, "target_index": true,
	"retries": true, "status": true, "error": true, "error_class": true,
}

// textKeys hold what users wrote. A result keeps their digest alone.
var textKeys = map[string]string{"messages": "messages_sha256", "text_input": "text_input_sha256"}

// AppendRecord appends the record as one JSON object, without a line end: the
// trace row, then what happened. Texts of the row are replaced by their
// SHA-256 unless keepText.
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
	dst = dst[:len(dst)-1] // go on inside the object
	dst = append(dst, `, "row": `...)
	dst = strconv.AppendInt(dst, int64(rec.Row), 10)
	dst = appendInstant(dst, "due_ms", trace.Some(rec.Due))
	dst = appendInstant(dst, "ready_ms", trace.Some(rec.Ready))
	dst = appendSpan(dst, "opening_ms", rec.ConnectTime)
	dst = appendInstant(dst, "sent_ms", rec.Sent)
	dst = appendInstant(dst, "first_ms", rec.First)
	dst = appendInstant(dst, "last_ms", rec.Last)
	dst = appendInstant(dst, "done_ms", trace.Some(rec.Done))
	dst = appendCount(dst, "input_tokens", rec.Counts.Input)
	dst = appendCount(dst, "output_tokens", rec.Counts.Output)
	dst = appendCount(dst, "cached_tokens", rec.Counts.Cached)
	dst = appendCount(dst, "chunks", trace.Some(rec.Chunks))
	if len(rec.Gaps) > 0 {
		dst = append(dst, `, "chunk_ms": [`...)
		for i, gap := range rec.Gaps {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendDuration(dst, gap)
		}
		dst = append(dst, ']')
	}
	if rec.Stamps != "" {
		dst = append(append(append(dst, `, "stamps": "`...), rec.Stamps...), '"')
	}
	dst = appendSpan(dst, "first_blur_ms", rec.FirstStampError)
	dst = appendSpan(dst, "blur_ms", rec.MaxStampError)
	dst = appendCount(dst, "target_index", trace.Opt[int]{Value: rec.Target, Set: rec.Target != 0})
	dst = appendCount(dst, "retries", trace.Opt[int]{Value: rec.Retries, Set: rec.Retries != 0})
	dst = appendCount(dst, "status", trace.Some(rec.Status))
	if rec.Class != replay.OK {
		message, err := jsonscan.Strict.Marshal(rec.Error)
		if err != nil {
			return dst, err
		}
		dst = append(dst, `, "error": `...)
		dst = append(dst, message...)
		dst = append(dst, `, "error_class": "`...)
		dst = append(append(dst, rec.Class...), '"')
	}
	return append(dst, '}'), nil
}

func appendInstant(dst []byte, key string, at replay.Instant) []byte {
	if !at.Set {
		return dst
	}
	dst = append(append(append(dst, `, "`...), key...), `": `...)
	return appendDuration(dst, at.Value)
}

// appendSpan appends a duration that is mostly none, and then left out.
func appendSpan(dst []byte, key string, d time.Duration) []byte {
	return appendInstant(dst, key, replay.Instant{Value: d, Set: d != 0})
}

// appendDuration appends milliseconds with as many of six decimals as it
// takes, as the integers that they are: a float of more than 15 digits would
// not read back as it was. Gaps are most of a record.
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

func appendCount(dst []byte, key string, n trace.Opt[int]) []byte {
	if !n.Set {
		return dst
	}
	dst = append(append(append(dst, `, "`...), key...), `": `...)
	return strconv.AppendInt(dst, int64(n.Value), 10)
}

// parseRecord reads a result line from the trace row that it also is.
func parseRecord(row trace.Request) (replay.Record, error) {
	var line recordLine
	if len(row.Extra) > 0 {
		if err := jsonscan.Strict.Unmarshal(row.Extra, &line); err != nil {
			return replay.Record{}, fmt.Errorf("result line does not decode: %.100q", err.Error())
		}
	}
	if line.DoneMS == nil {
		return replay.Record{}, fmt.Errorf("not a result line: no done_ms")
	}
	extra, err := format.FilterExtra(&row, func(key, raw string) (string, string, bool) { return key, raw, !recordKeys[key] })
	if err != nil {
		return replay.Record{}, err
	}
	row.Extra = extra
	rec := replay.Record{
		Request: row, Row: line.Row,
		Due: replay.Milliseconds(line.DueMS), Ready: replay.Milliseconds(line.ReadyMS),
		Sent: instantOf(line.SentMS), First: instantOf(line.FirstMS), Last: instantOf(line.LastMS),
		ConnectTime: replay.Milliseconds(line.OpeningMS), Done: replay.Milliseconds(*line.DoneMS),
		Chunks: line.Chunks, Stamps: line.Stamps, FirstStampError: replay.Milliseconds(line.FirstBlurMS), MaxStampError: replay.Milliseconds(line.BlurMS), Target: line.Target,
		Counts:  replay.Counts{Input: optOf(line.InputTokens), Output: optOf(line.OutputTokens), Cached: optOf(line.CachedTokens)},
		Retries: line.Retries, Status: line.Status, Class: line.ErrorClass, Error: line.Error,
	}
	for _, ms := range line.ChunkMS {
		if math.IsNaN(ms) {
			return replay.Record{}, fmt.Errorf("chunk_ms is not a number")
		}
		rec.Gaps = append(rec.Gaps, replay.Milliseconds(ms))
	}
	return rec, nil
}

func instantOf(ms *float64) replay.Instant {
	if ms == nil {
		return replay.Instant{}
	}
	return trace.Some(replay.Milliseconds(*ms))
}

func optOf(n *int) trace.Opt[int] {
	if n == nil {
		return trace.Opt[int]{}
	}
	return trace.Some(*n)
}
