package server

import (
	"bytes"
	"math"
)

// promptKey is how a body begins to say its prompt. Within a string of JSON its
// quotes would have backslashes, so it is a key wherever it is found.
var promptKey = []byte(`"prompt"`)

// noIDs stands in a body for an array of token ids that was cut out. It is no
// prompt, so a body that has it of its own is an error in any case.
var noIDs = []byte(`[-1]`)

// cutIDs takes the array of a prompt of token ids out of a body: a JSON library
// walks through it at a cost of 20 times that of reading it, and a long prompt
// is nearly all of its body. Where ok is false the body has no such prompt as
// far as a glance can tell. Whether rest is JSON, and whether the array is the
// prompt of the request and not of something in it, is still to be seen.
func cutIDs(body []byte) (rest []byte, ids raw, ok bool) {
	key := bytes.Index(body, promptKey)
	if key < 0 {
		return nil, nil, false
	}
	i := skipSpace(body, key+len(promptKey))
	if i == len(body) || body[i] != ':' {
		return nil, nil, false
	}
	start := skipSpace(body, i+1)
	if start == len(body) || body[start] != '[' {
		return nil, nil, false
	}
	if first := skipSpace(body, start+1); first == len(body) || !isDigit(body[first]) {
		return nil, nil, false
	}
	length := bytes.IndexByte(body[start:], ']')
	if length < 0 {
		return nil, nil, false
	}
	end := start + length + 1
	rest = make([]byte, 0, len(body)-length+len(noIDs))
	rest = append(rest, body[:start]...)
	rest = append(rest, noIDs...)
	rest = append(rest, body[end:]...)
	return rest, raw(body[start:end]), true
}

// readIDs adds the token ids of an array straight from its text, so that a
// prompt takes no memory for them.
func readIDs(m raw, param string, p tokens) *apiError {
	ids := inside(m)
	for i := 0; i < len(ids); {
		start := skipSpace(ids, i)
		end, id := start, uint64(0)
		for end < len(ids) && isDigit(ids[end]) && id <= math.MaxUint32 {
			id = 10*id + uint64(ids[end]-'0')
			end++
		}
		next := skipSpace(ids, end)
		last := next == len(ids)
		switch {
		case end == start, id > math.MaxUint32, ids[start] == '0' && end > start+1,
			!last && ids[next] != ',', !last && next+1 == len(ids):
			return badRequest(param, "%s[%d] is not a token id, an integer from 0 to %d", param, p.Len(), uint32(math.MaxUint32))
		}
		p.AddToken(id)
		i = next + 1
	}
	return nil
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// skipSpace is the index of the first byte from i on that is no white space.
func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}
