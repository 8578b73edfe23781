package format

import (
	"encoding/binary"
	"slices"
	"strconv"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// AppendRow appends the row as one JSON object, without a line end. Keys have
// the order and spacing of published traces, so that these are reproduced byte
// for byte.
func AppendRow(dst []byte, r trace.Request) []byte {
	dst = append(dst, '{')
	if r.Timestamp.Set {
		dst = append(dst, `"timestamp": `...)
		dst = trace.AppendMS(dst, r.Timestamp.Value)
		dst = append(dst, ", "...)
	}
	dst = append(dst, `"input_length": `...)
	dst = strconv.AppendInt(dst, int64(r.InputLength), 10)
	dst = append(dst, `, "output_length": `...)
	dst = strconv.AppendInt(dst, int64(r.OutputLength), 10)
	if r.HashIDs != nil {
		dst = append(dst, `, "hash_ids": [`...)
		dst = appendIDs(dst, r.HashIDs)
		dst = append(dst, ']')
	}
	if r.SessionID != "" {
		dst = append(dst, `, "session_id": `...)
		dst = jsonscan.AppendString(dst, r.SessionID)
	}
	if r.ID != "" {
		dst = append(dst, `, "request_id": `...)
		dst = jsonscan.AppendString(dst, r.ID)
	}
	if r.After != nil {
		dst = appendAfter(append(dst, `, "after": `...), r.After)
	}
	if r.Delay.Set {
		dst = append(dst, `, "delay": `...)
		dst = trace.AppendMS(dst, r.Delay.Value)
	}
	if r.DelayKind != "" {
		dst = append(dst, `, "delay_kind": `...)
		dst = jsonscan.AppendString(dst, string(r.DelayKind))
	}
	if r.ContextLen.Set {
		dst = append(dst, `, "context_len": `...)
		dst = strconv.AppendInt(dst, int64(r.ContextLen.Value), 10)
	}
	if r.UniquePromptLen.Set {
		dst = append(dst, `, "unique_user_prompt_len": `...)
		dst = strconv.AppendInt(dst, int64(r.UniquePromptLen.Value), 10)
	}
	if len(r.Extra) > len(`{}`) {
		dst = append(dst, ", "...)
		dst = append(dst, r.Extra[1:len(r.Extra)-1]...)
	}
	return append(dst, '}')
}

// appendAfter appends request ids as a JSON array.
func appendAfter(dst []byte, ids []string) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, separator...)
		}
		dst = jsonscan.AppendString(dst, id)
	}
	return append(dst, ']')
}

const separator = ", "

// appendIDs appends decimal numbers with a separator between them. Ids are
// usually assigned consecutively, so most ids are one more than the previous id.
func appendIDs(dst []byte, ids []uint64) []byte {
	if len(ids) == 0 {
		return dst
	}
	for i := 0; i < len(ids); {
		next := i + 1
		for next < len(ids) && ids[next] == ids[next-1]+1 {
			next++
		}
		dst = appendRun(dst, ids[i], next-i)
		i = next
	}
	return dst[:len(dst)-len(separator)]
}

// appendRun appends n consecutive numbers, each followed by the separator.
// Numbers of one decade differ only in their last digit: the first is formatted,
// and two words that hold its text are incremented and stored for each.
func appendRun(dst []byte, first uint64, n int) []byte {
	for n > 0 {
		decade := min(n, 10-int(first%10))
		before := len(dst)
		dst = append(strconv.AppendUint(dst, first, 10), separator...)
		width := len(dst) - before
		if width > 16 { // longer than two words: one by one
			decade = 1
		}
		if decade > 1 {
			dst = countUp(dst, width, decade-1)
		}
		first += uint64(decade)
		n -= decade
	}
	return dst
}

// countUp appends the texts of the n numbers that follow the one in the last
// width bytes of dst, 3 to 16 with the separator, while its last digit does
// not carry.
func countUp(dst []byte, width, n int) []byte {
	const word = 8
	start, end := len(dst)-width, len(dst)
	// The words are loaded and stored whole: bytes after the text are
	// overwritten by the next number or cut off.
	dst = slices.Grow(dst, n*width+2*word)[:end+n*width+2*word]
	low, high := binary.LittleEndian.Uint64(dst[start:]), binary.LittleEndian.Uint64(dst[start+word:])
	var one [2]uint64
	last := width - len(separator) - 1
	one[last/word] = 1 << (last % word * 8)
	for range n {
		low += one[0]
		high += one[1]
		binary.LittleEndian.PutUint64(dst[end:], low)
		binary.LittleEndian.PutUint64(dst[end+word:], high)
		end += width
	}
	return dst[:end]
}
