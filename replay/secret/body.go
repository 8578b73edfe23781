package secret

import (
	"encoding/json"
	"slices"
	"strings"

	"moontide/trace/jsonscan"
)

// plainKeys are members of a body whose texts are not secret.
var plainKeys = []string{
	"model", "stream_options", "stop", "reasoning_effort", "response_format", "service_tier", "tool_choice", "truncation",
}

// Body replaces the strings in a JSON object that may be secret: those of all
// members except well-known ones such as model and stop. Numbers, booleans and keys
// stay. A replacement has the first 32 bits of the string's SHA-256, so that equal
// bodies have equal masks. Text without such strings is returned unchanged, and
// text that is not an object is replaced.
func Body(body string) string {
	text := strings.TrimSpace(body)
	if !json.Valid([]byte(text)) || text[0] != '{' {
		return Mask(body)
	}
	var m masker
	if m.value([]byte(text), false, 0); m.failed {
		return Mask(body)
	}
	if !m.masked {
		return body
	}
	return string(m.out)
}

// masker copies JSON and masks strings.
type masker struct {
	out            []byte
	masked, failed bool
}

// value copies a value. The strings of one that is plain stay.
func (m *masker) value(value []byte, plain bool, depth int) {
	n := 0
	separate := func() {
		if n++; n > 1 {
			m.out = append(m.out, ',')
		}
	}
	switch {
	case value[0] == '{':
		m.out = append(m.out, '{')
		err := jsonscan.Members(value, func(key []byte, _ int, member []byte) error {
			separate()
			m.out = append(jsonscan.AppendString(m.out, string(key)), ':')
			m.value(member, plain || depth == 0 && slices.Contains(plainKeys, string(key)), depth+1)
			return nil
		})
		m.out, m.failed = append(m.out, '}'), m.failed || err != nil
	case value[0] == '[':
		m.out = append(m.out, '[')
		jsonscan.Elements(value, func(_ int, element []byte) error {
			separate()
			m.value(element, plain, depth+1)
			return nil
		})
		m.out = append(m.out, ']')
	case value[0] == '"' && !plain:
		var secret string
		m.failed = json.Unmarshal(value, &secret) != nil || m.failed
		m.out, m.masked = jsonscan.AppendString(m.out, Mask(secret)), true
	default:
		m.out = append(m.out, value...)
	}
}
