package server

import (
	"cmp"
	"strconv"
	"strings"

	"moontide/trace/jsonscan"
)

// form is a text with fields in it, such as {"id":"$id"}, which a server fills in for
// each response. Nothing is looked up as events are written, which must be very cheap.
type form []piece

// piece is a text of a form and the field that follows it, which only the last lacks.
type piece struct {
	text string
	field
	word bool // the field is the text
}

// field appends a part of a form. Unless fixed is nil, it reports whether the part is the
// same in the events of all tokens of a part of the response but the last one.
type field struct {
	append func(r *response, b []byte) []byte
	fixed  func(r *response) bool
	free   func(r *response, b []byte) []byte // append if fixed is false; nil for the same
}

// formOf returns the form that a text describes. Fields are words after a dollar sign.
func formOf(text string) (f form) {
	for {
		before, after, found := strings.Cut(text, "$")
		if !found {
			return append(f, piece{text: before})
		}
		end := strings.IndexFunc(after+".", func(c rune) bool { return c < 'a' || c > 'z' })
		field, known := fields[after[:end]]
		if !known {
			panic("server: a form has the unknown field $" + after[:end])
		}
		f = append(f, piece{before, field, after[:end] == "text"})
		text = after[end:]
	}
}

// dataForm is the form of an unnamed event. data lacks its closing brace.
func dataForm(data string) string { return "data: " + data + "$stamp}\n\n" }

// eventForm is the form of a named event; the name is also the type in its data. members
// are the members after the type.
func eventForm(name, members string) string {
	return "event: " + name + "\n" + dataForm(`{"type":"`+name+`"`+members)
}

// bind returns the form with the fields filled in that are fixed in the part that a
// response is at.
func (f form) bind(r *response) form {
	bound, b := make(form, 0, 4), make([]byte, 0, 512) // enough, mostly
	for _, p := range f {
		if b = append(b, p.text...); p.fixed != nil && p.fixed(r) {
			b = p.append(r, b)
			continue
		}
		if p.text = string(b); p.free != nil {
			p.append = p.free
		}
		bound, b = append(bound, p), b[:0]
	}
	return bound
}

// append fills in a form with the state of a response.
func (f form) append(b []byte, r *response) []byte {
	if len(f) == 0 {
		return b
	}
	last := len(f) - 1
	for i := range f[:last] {
		b = f[i].field.append(r, append(b, f[i].text...))
	}
	return append(b, f[last].text...)
}

// number returns a field with a number, and quoted one with a JSON string, or null instead
// of an empty one.
func number(of func(r *response) int) field {
	return field{append: func(r *response, b []byte) []byte { return strconv.AppendInt(b, int64(of(r)), 10) }}
}

func quoted(of func(r *response) string) field {
	return field{append: func(r *response, b []byte) []byte {
		if of(r) == "" {
			return append(b, "null"...)
		}
		return jsonscan.AppendString(b, of(r))
	}}
}

// always makes a field fixed.
func (f field) always() field {
	f.fixed = func(*response) bool { return true }
	return f
}

// when returns a field that is another text unless a condition holds, which is fixed.
func (f field) when(is func(r *response) bool, other string) field {
	return field{func(r *response, b []byte) []byte {
		if !is(r) {
			return append(b, other...)
		}
		return f.append(r, b)
	}, func(r *response) bool { return !is(r) }, f.append}
}

// of returns a field that a function appends.
func of(f func(r *response, b []byte) []byte) field { return field{append: f} }

// fields are what forms may have.
var fields = map[string]field{
	"id":      of(func(r *response, b []byte) []byte { return append(b, r.id...) }).always(),
	"model":   of(func(r *response, b []byte) []byte { return append(b, r.model...) }).always(),
	"created": number(func(r *response) int { return int(r.created) }).always(),
	"limit":   number(func(r *response) int { return r.maxTokens }).when(func(r *response) bool { return r.maxTokens > 0 }, "null"),

	"text":   of(func(r *response, b []byte) []byte { return r.appendWords(b, r.from, r.upTo) }),
	"sofar":  of(func(r *response, b []byte) []byte { return r.appendWords(b, 0, r.upTo) }),
	"ids":    of((*response).appendIDs),
	"parts":  of((*response).appendParts),
	"index":  number(func(r *response) int { return r.part.index }).always(),
	"finish": of(func(r *response, b []byte) []byte { return r.finish().append(b, r) }).always(),
	"incomplete": of(func(r *response, b []byte) []byte { return append(b, `{"reason":"max_output_tokens"}`...) }).
		when(func(r *response) bool { return r.full }, "null"),
	"returned": of(func(r *response, b []byte) []byte { return append(r.appendIDs(append(b, `,"token_ids":[`...)), ']') }).
		when(func(r *response) bool { return r.tokenIDs }, ""),

	"prompt":   number(func(r *response) int { return r.promptTokens }).always(),
	"cached":   number(func(r *response) int { return r.cachedTokens }).always(),
	"uncached": number(func(r *response) int { return r.promptTokens - r.cachedTokens }).always(),
	"output":   number(func(r *response) int { return r.upTo }),
	"total":    number(func(r *response) int { return r.promptTokens + r.upTo }),
	"reasoned": number((*response).reasoned),
	"details": of(func(r *response, b []byte) []byte { // only of a model that reasons
		return append(strconv.AppendInt(append(b, `,"completion_tokens_details":{"reasoning_tokens":`...), int64(r.reasoned()), 10), '}')
	}).when(func(r *response) bool { return r.reasoning > 0 }, ""),
	"usage": of(func(r *response, b []byte) []byte { return r.api.usage.append(b, r) }),
	"continuous": of(func(r *response, b []byte) []byte { return r.counted.append(append(b, ','), r) }).
		when(func(r *response) bool { return r.continuousUsage }, ""),

	"sequence": of(func(r *response, b []byte) []byte {
		r.sequence++
		return strconv.AppendInt(b, int64(r.sequence-1), 10)
	}),
	"stamp": of(func(r *response, b []byte) []byte {
		return strconv.AppendInt(append(b, `,"written_ns":`...), r.stamp, 10)
	}).
		when(func(r *response) bool { return r.stamped }, ""),

	"message": quoted(func(r *response) string { return r.failure.message }),
	"kind": of(func(r *response, b []byte) []byte {
		return append(b, cmp.Or(r.api.kinds[r.failure.status], "invalid_request_error")...)
	}),
	"param": quoted(func(r *response) string { return r.failure.param }),
	"code":  quoted(func(r *response) string { return r.failure.code }),
}
