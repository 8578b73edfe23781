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
	text  string
	field func(b []byte, r *response) []byte
	fixed func(r *response) bool // see the variable; may be nil
	word  bool                   // the field is the text
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
		f = append(f, piece{before, field, fixed[after[:end]], after[:end] == "text"})
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
			b = p.field(b, r)
			continue
		}
		bound, b = append(bound, piece{text: string(b), field: p.field, word: p.word}), b[:0]
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
		b = f[i].field(append(b, f[i].text...), r)
	}
	return append(b, f[last].text...)
}

// number is a field with a number.
func number(of func(r *response) int) func([]byte, *response) []byte {
	return func(b []byte, r *response) []byte { return strconv.AppendInt(b, int64(of(r)), 10) }
}

// text is a field with a text that needs no escaping, or that is JSON already.
func text(of func(r *response) string) func([]byte, *response) []byte {
	return func(b []byte, r *response) []byte { return append(b, of(r)...) }
}

// quoted is a field with a JSON string, or null instead of an empty one.
func quoted(of func(r *response) string) func([]byte, *response) []byte {
	return func(b []byte, r *response) []byte {
		if of(r) == "" {
			return append(b, "null"...)
		}
		return jsonscan.AppendString(b, of(r))
	}
}

// optional is a field that is null unless a condition holds.
func optional(is func(r *response) bool, field func([]byte, *response) []byte) func([]byte, *response) []byte {
	return func(b []byte, r *response) []byte {
		if !is(r) {
			return append(b, "null"...)
		}
		return field(b, r)
	}
}

// fixed are the fields that are, or may be, the same in the events of all tokens of a
// part but the last one of a response.
var fixed = map[string]func(r *response) bool{
	"id": always, "model": always, "created": always, "index": always,
	"prompt": always, "cached": always, "uncached": always,
	"finish":     always,
	"details":    func(r *response) bool { return r.reasoning == 0 },
	"returned":   func(r *response) bool { return !r.tokenIDs },
	"continuous": func(r *response) bool { return !r.continuousUsage },
	"stamp":      func(r *response) bool { return !r.stamped },
}

func always(*response) bool { return true }

// fields are what forms may have.
var fields = map[string]func(b []byte, r *response) []byte{
	"id":      text(func(r *response) string { return r.id }),
	"model":   text(func(r *response) string { return r.model }),
	"created": number(func(r *response) int { return int(r.created) }),
	"limit":   optional(func(r *response) bool { return r.maxTokens > 0 }, number(func(r *response) int { return r.maxTokens })),

	"text":   func(b []byte, r *response) []byte { return r.appendWords(b, r.from, r.upTo) },
	"sofar":  func(b []byte, r *response) []byte { return r.appendWords(b, 0, r.upTo) },
	"ids":    func(b []byte, r *response) []byte { return r.appendIDs(b) },
	"parts":  func(b []byte, r *response) []byte { return r.appendParts(b) },
	"index":  number(func(r *response) int { return r.part.index }),
	"finish": func(b []byte, r *response) []byte { return r.finish().append(b, r) },
	"incomplete": optional(func(r *response) bool { return r.full },
		text(func(*response) string { return `{"reason":"max_output_tokens"}` })),
	"returned": func(b []byte, r *response) []byte { // the ids, if they were asked for
		if !r.tokenIDs {
			return b
		}
		return append(r.appendIDs(append(b, `,"token_ids":[`...)), ']')
	},

	"prompt":   number(func(r *response) int { return r.usage.prompt }),
	"cached":   number(func(r *response) int { return r.usage.cached }),
	"uncached": number(func(r *response) int { return r.usage.prompt - r.usage.cached }),
	"output":   func(b []byte, r *response) []byte { return strconv.AppendInt(b, int64(r.upTo), 10) },
	"total":    func(b []byte, r *response) []byte { return strconv.AppendInt(b, int64(r.usage.prompt+r.upTo), 10) },
	"reasoned": number(func(r *response) int { return min(r.upTo, r.reasoning) }),
	"details": func(b []byte, r *response) []byte { // only of a model that reasons
		if r.reasoning == 0 {
			return b
		}
		return append(appendMember(b, `,"completion_tokens_details":{"reasoning_tokens":`, int64(min(r.upTo, r.reasoning))), '}')
	},
	"usage": func(b []byte, r *response) []byte { return r.api.usage.append(b, r) },
	"continuous": func(b []byte, r *response) []byte {
		if !r.continuousUsage {
			return b
		}
		return r.counted.append(append(b, ','), r)
	},

	"sequence": func(b []byte, r *response) []byte {
		r.sequence++
		return strconv.AppendInt(b, int64(r.sequence-1), 10)
	},
	"stamp": func(b []byte, r *response) []byte {
		if !r.stamped {
			return b
		}
		return appendMember(b, `,"written_ns":`, r.stamp)
	},

	"message": quoted(func(r *response) string { return r.failure.message }),
	"kind":    text(func(r *response) string { return cmp.Or(r.api.kinds[r.failure.status], "invalid_request_error") }),
	"param":   quoted(func(r *response) string { return r.failure.param }),
	"code":    quoted(func(r *response) string { return r.failure.code }),
}

func appendMember(b []byte, name string, value int64) []byte {
	return strconv.AppendInt(append(b, name...), value, 10)
}
