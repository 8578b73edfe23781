package server

import (
	"cmp"
	"strconv"
	"strings"

	"moontide/trace/jsonscan"
)

// form is a text with fields in it, such as {"id":"$id"}, which a server fills in for
// each answer. Nothing is looked up as events are written, which must be very cheap.
type form []piece

// piece is a text of a form and the field that follows it, which only the last lacks.
type piece struct {
	text  string
	field func(b []byte, a *answer) []byte
	fixed func(a *answer) bool // see the variable; may be nil
	word  bool                 // the field is the text
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

// bind returns the form with the fields filled in that are fixed in the part that an
// answer is at.
func (f form) bind(a *answer) form {
	bound, b := make(form, 0, 4), make([]byte, 0, 512) // enough, mostly
	for _, p := range f {
		if b = append(b, p.text...); p.fixed != nil && p.fixed(a) {
			b = p.field(b, a)
			continue
		}
		bound, b = append(bound, piece{text: string(b), field: p.field, word: p.word}), b[:0]
	}
	return bound
}

// append fills in a form with the state of an answer.
func (f form) append(b []byte, a *answer) []byte {
	if len(f) == 0 {
		return b
	}
	last := len(f) - 1
	for i := range f[:last] {
		b = f[i].field(append(b, f[i].text...), a)
	}
	return append(b, f[last].text...)
}

// number is a field with a number.
func number(of func(a *answer) int) func([]byte, *answer) []byte {
	return func(b []byte, a *answer) []byte { return strconv.AppendInt(b, int64(of(a)), 10) }
}

// text is a field with a text that needs no escaping, or that is JSON already.
func text(of func(a *answer) string) func([]byte, *answer) []byte {
	return func(b []byte, a *answer) []byte { return append(b, of(a)...) }
}

// quoted is a field with a JSON string, or null instead of an empty one.
func quoted(of func(a *answer) string) func([]byte, *answer) []byte {
	return func(b []byte, a *answer) []byte {
		if of(a) == "" {
			return append(b, "null"...)
		}
		return jsonscan.AppendString(b, of(a))
	}
}

// optional is a field that is null unless a condition holds.
func optional(is func(a *answer) bool, field func([]byte, *answer) []byte) func([]byte, *answer) []byte {
	return func(b []byte, a *answer) []byte {
		if !is(a) {
			return append(b, "null"...)
		}
		return field(b, a)
	}
}

// fixed are the fields that are, or may be, the same in the events of all tokens of a
// part but the last one of an answer.
var fixed = map[string]func(a *answer) bool{
	"id": always, "model": always, "created": always, "index": always,
	"prompt": always, "cached": always, "uncached": always,
	"finish":     always,
	"details":    func(a *answer) bool { return a.reasoning == 0 },
	"returned":   func(a *answer) bool { return !a.tokenIDs },
	"continuous": func(a *answer) bool { return !a.continuousUsage },
	"stamp":      func(a *answer) bool { return !a.stamped },
}

func always(*answer) bool { return true }

// fields are what forms may have.
var fields = map[string]func(b []byte, a *answer) []byte{
	"id":      text(func(a *answer) string { return a.id }),
	"model":   text(func(a *answer) string { return a.model }),
	"created": number(func(a *answer) int { return int(a.created) }),
	"limit":   optional(func(a *answer) bool { return a.maxTokens > 0 }, number(func(a *answer) int { return a.maxTokens })),

	"text":   func(b []byte, a *answer) []byte { return a.appendWords(b, a.from, a.upTo) },
	"sofar":  func(b []byte, a *answer) []byte { return a.appendWords(b, 0, a.upTo) },
	"ids":    func(b []byte, a *answer) []byte { return a.appendIDs(b) },
	"parts":  func(b []byte, a *answer) []byte { return a.appendParts(b) },
	"index":  number(func(a *answer) int { return a.part.index }),
	"finish": func(b []byte, a *answer) []byte { return a.finish().append(b, a) },
	"incomplete": optional(func(a *answer) bool { return a.full },
		text(func(*answer) string { return `{"reason":"max_output_tokens"}` })),
	"returned": func(b []byte, a *answer) []byte { // the ids, if they were asked for
		if !a.tokenIDs {
			return b
		}
		return append(a.appendIDs(append(b, `,"token_ids":[`...)), ']')
	},

	"prompt":   number(func(a *answer) int { return a.usage.prompt }),
	"cached":   number(func(a *answer) int { return a.usage.cached }),
	"uncached": number(func(a *answer) int { return a.usage.prompt - a.usage.cached }),
	"output":   func(b []byte, a *answer) []byte { return strconv.AppendInt(b, int64(a.upTo), 10) },
	"total":    func(b []byte, a *answer) []byte { return strconv.AppendInt(b, int64(a.usage.prompt+a.upTo), 10) },
	"reasoned": number(func(a *answer) int { return min(a.upTo, a.reasoning) }),
	"details": func(b []byte, a *answer) []byte { // only of a model that reasons
		if a.reasoning == 0 {
			return b
		}
		return append(appendMember(b, `,"completion_tokens_details":{"reasoning_tokens":`, int64(min(a.upTo, a.reasoning))), '}')
	},
	"usage": func(b []byte, a *answer) []byte { return a.api.usage.append(b, a) },
	"continuous": func(b []byte, a *answer) []byte {
		if !a.continuousUsage {
			return b
		}
		return a.counted.append(append(b, ','), a)
	},

	"sequence": func(b []byte, a *answer) []byte {
		a.sequence++
		return strconv.AppendInt(b, int64(a.sequence-1), 10)
	},
	"stamp": func(b []byte, a *answer) []byte {
		if !a.stamped {
			return b
		}
		return appendMember(b, `,"written_ns":`, a.stamp)
	},

	"message": quoted(func(a *answer) string { return a.failure.message }),
	"kind":    text(func(a *answer) string { return cmp.Or(a.api.kinds[a.failure.status], "invalid_request_error") }),
	"param":   quoted(func(a *answer) string { return a.failure.param }),
	"code":    quoted(func(a *answer) string { return a.failure.code }),
}

func appendMember(b []byte, name string, value int64) []byte {
	return strconv.AppendInt(append(b, name...), value, 10)
}
