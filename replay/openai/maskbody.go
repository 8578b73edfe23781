package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// plainKeys are members of a body whose texts are not secret.
var plainKeys = []string{
	"model", "stream_options", "stop", "reasoning_effort", "response_format", "service_tier", "tool_choice", "truncation",
}

// MaskBody replaces the strings in a JSON object that may be secret: those of all
// members except well-known ones such as model and stop. Numbers, booleans and keys
// stay. A replacement has the first 32 bits of the string's SHA-256, so that equal
// bodies have equal masks. Text without such strings is returned unchanged, and
// text that is not an object is replaced.
func MaskBody(body string) string {
	m := masker{in: json.NewDecoder(strings.NewReader(body))}
	m.in.UseNumber()
	if err := m.value(false); err != nil || m.in.More() || !strings.HasPrefix(strings.TrimSpace(body), "{") {
		return mask(body)
	}
	if !m.masked {
		return body
	}
	return m.out.String()
}

func mask(secret string) string { return fmt.Sprintf("***%.4x", sha256.Sum256([]byte(secret))) }

// masker copies JSON and masks strings.
type masker struct {
	in     *json.Decoder
	out    bytes.Buffer
	masked bool
}

// value copies the next value.
func (m *masker) value(plain bool) error {
	token, err := m.in.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		return m.members(rune(token), plain)
	case string:
		if !plain {
			m.masked = true
			token = mask(token)
		}
		return m.write(token)
	}
	return m.write(token)
}

// members copies the rest of an object or array. plain is that of its members.
func (m *masker) members(open rune, plain bool) error {
	m.out.WriteRune(open)
	top := m.out.Len() == 1
	for n := 0; m.in.More(); n++ {
		if n > 0 {
			m.out.WriteByte(',')
		}
		memberPlain := plain
		if open == '{' {
			key, err := m.in.Token()
			if err != nil {
				return err
			}
			if err := m.write(key); err != nil {
				return err
			}
			m.out.WriteByte(':')
			name, _ := key.(string)
			memberPlain = plain || top && slices.Contains(plainKeys, name)
		}
		if err := m.value(memberPlain); err != nil {
			return err
		}
	}
	end, err := m.in.Token()
	if err == nil {
		m.out.WriteString(fmt.Sprint(end))
	}
	return err
}

func (m *masker) write(v any) error {
	text, err := json.Marshal(v)
	m.out.Write(text)
	return err
}
