package format

import (
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
		if len(r.HashIDs) > 0 {
			dst = appendIDs(dst, r.HashIDs)
		}
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
			dst = append(dst, ", "...)
		}
		dst = jsonscan.AppendString(dst, id)
	}
	return append(dst, ']')
}

// appendIDs appends at least one decimal number. Most ids are one more than their
// predecessor, and differ from it in the last digit only.
func appendIDs(dst []byte, ids []uint64) []byte {
	const separator = ", "
	start := 0 // of the number before
	for i, id := range ids {
		before := dst[start:]
		start = len(dst)
		if i > 0 && id == ids[i-1]+1 && id%10 != 0 {
			dst = append(dst, before...)
			dst[len(dst)-len(separator)-1]++
			continue
		}
		dst = append(strconv.AppendUint(dst, id, 10), separator...)
	}
	return dst[:len(dst)-len(separator)]
}
