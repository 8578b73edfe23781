package runfile

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

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
		c.err = err
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
