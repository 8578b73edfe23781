package openai

import "bytes"

// glance is what an event says of the progress of an answer.
type glance struct {
	token    bool // it carries part of the answer: text, reasoning or a tool call
	finished bool // it says why the answer ended
	usage    tally
}

// glanceAt reads from an event's data what nearly all events consist of. It is
// a parser of JSON that builds nothing and knows only the members that matter.
// ok is false for whatever else there may be: an error, timings, an unusual
// reason to end, capitals or escapes in a key, a member given twice, JSON that
// is malformed. Such an event is to be decoded; where ok is true, decoding would
// say the same.
func glanceAt(data []byte) (g glance, ok bool) {
	s := scanner{b: data}
	var choices, usage bool
	for more := s.open('{', '}'); more; more = s.more('}') {
		switch string(s.key()) {
		case "choices":
			s.once(&choices)
			s.choices(&g)
		case "usage":
			s.once(&usage)
			s.usage(&g.usage)
		case "timings", "error":
			s.null()
		default:
			s.value(0)
		}
	}
	return g, s.atEnd()
}

// choices looks at the array of choices, or null.
func (s *scanner) choices(g *glance) {
	if s.peek() == 'n' {
		s.null()
		return
	}
	for more := s.open('[', ']'); more; more = s.more(']') {
		s.choice(g)
	}
}

func (s *scanner) choice(g *glance) {
	var text, delta, reason bool
	for more := s.open('{', '}'); more; more = s.more('}') {
		switch string(s.key()) {
		case "text":
			s.once(&text)
			g.token = s.value(0) || g.token
		case "delta":
			s.once(&delta)
			s.delta(g)
		case "finish_reason":
			s.once(&reason)
			g.finished = s.reason() || g.finished
		default:
			s.value(0)
		}
	}
}

// reason passes over why an answer ended.
func (s *scanner) reason() (present bool) {
	if s.peek() != '"' {
		return s.value(0)
	}
	start := s.at
	s.text()
	switch string(s.b[start:s.at]) {
	case `""`:
		return false
	case `"stop"`, `"length"`, `"tool_calls"`:
		return true
	}
	s.fail() // it may be that the answer was broken off
	return false
}

// delta looks at what a chat chunk adds, or null.
func (s *scanner) delta(g *glance) {
	if s.peek() == 'n' {
		s.null()
		return
	}
	var content, thought, reasoning, calls bool
	for more := s.open('{', '}'); more; more = s.more('}') {
		key := s.key()
		var seen *bool
		switch string(key) {
		case "content":
			seen = &content
		case "reasoning_content":
			seen = &thought
		case "reasoning":
			seen = &reasoning
		case "tool_calls":
			seen = &calls
		default:
			s.value(0)
			continue
		}
		s.once(seen)
		g.token = s.value(0) || g.token
	}
}

// scanner goes over JSON. Once something is not as it should be it has failed:
// it is then at the end, where nothing follows.
type scanner struct {
	b      []byte
	at     int
	failed bool
}

func (s *scanner) fail() { s.at, s.failed = len(s.b), true }

// once fails where a member comes a second time.
func (s *scanner) once(seen *bool) {
	if *seen {
		s.fail()
	}
	*seen = true
}

// peek goes to the next byte that is no blank and returns it, or 0.
func (s *scanner) peek() byte {
	if s.at < len(s.b) && s.b[s.at] > ' ' {
		return s.b[s.at]
	}
	return s.peekBehindBlanks()
}

func (s *scanner) peekBehindBlanks() byte {
	for ; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

// open enters an object or an array and reports whether something is in it.
func (s *scanner) open(opening, closing byte) bool {
	if s.peek() != opening {
		s.fail()
		return false
	}
	s.at++
	if s.peek() == closing {
		s.at++
		return false
	}
	return !s.failed
}

// more reports whether another element follows the one that was read.
func (s *scanner) more(closing byte) bool {
	switch s.peek() {
	case ',':
		s.at++
		return true
	case closing:
		s.at++
	default:
		s.fail()
	}
	return false
}

// atEnd reports whether all was read and nothing failed.
func (s *scanner) atEnd() bool { return s.peek() == 0 && s.at == len(s.b) && !s.failed }

// plainKey says which bytes a key may have so that it can be written in one
// way only: decoders take capitals for small letters, and escapes for both.
var plainKey = func() (plain [256]bool) {
	for c := ' '; c < 0x80; c++ {
		plain[c] = c != '"' && c != '\\' && !('A' <= c && c <= 'Z')
	}
	return plain
}()

// key returns the key of a member, and fails where it is not plain.
func (s *scanner) key() []byte {
	if s.peek() != '"' {
		s.fail()
		return nil
	}
	start := s.at + 1
	end := start
	for end < len(s.b) && plainKey[s.b[end]] {
		end++
	}
	if end == len(s.b) || s.b[end] != '"' {
		s.fail()
		return nil
	}
	s.at = end + 1
	s.colon()
	return s.b[start:end]
}

func (s *scanner) colon() {
	if s.peek() != ':' {
		s.fail()
		return
	}
	s.at++
}

// deepest is how far values are followed into one another.
const deepest = 16

// value passes over a value. It reports whether the value says anything: a
// string that is not empty or an array with something in it.
func (s *scanner) value(depth int) (present bool) {
	switch c := s.peek(); {
	case c == '"':
		return s.text() > 0
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	case c == 'n':
		s.word("null")
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case depth == deepest:
		s.fail()
	case c == '[':
		for more := s.open('[', ']'); more; more = s.more(']') {
			present = true
			s.value(depth + 1)
		}
	case c == '{':
		for more := s.open('{', '}'); more; more = s.more('}') {
			if s.peek() != '"' {
				s.fail()
				return false
			}
			s.text()
			s.colon()
			s.value(depth + 1)
		}
	default:
		s.fail()
	}
	return present
}

func (s *scanner) null() {
	s.peek()
	s.word("null")
}

func (s *scanner) word(word string) {
	if len(s.b)-s.at < len(word) || string(s.b[s.at:s.at+len(word)]) != word {
		s.fail()
		return
	}
	s.at += len(word)
}

// text passes over a string and returns its length between the quotes.
func (s *scanner) text() int {
	start := s.at + 1
	for at := start; ; at++ {
		next := bytes.IndexByte(s.b[at:], '"')
		if next < 0 {
			s.fail()
			return 0
		}
		at += next
		escapes := 0
		for s.b[at-1-escapes] == '\\' { // the opening quote ends it
			escapes++
		}
		if escapes%2 == 0 {
			s.at = at + 1
			return at - start
		}
	}
}

// number passes over a number: -?int frac? exp?
func (s *scanner) number() {
	if s.b[s.at] == '-' {
		s.at++
	}
	whole := s.digits()
	ok := whole == 1 || whole > 1 && s.b[s.at-whole] != '0'
	if s.at < len(s.b) && s.b[s.at] == '.' {
		s.at++
		ok = s.digits() > 0 && ok
	}
	if s.at < len(s.b) && s.b[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.b) && (s.b[s.at] == '+' || s.b[s.at] == '-') {
			s.at++
		}
		ok = s.digits() > 0 && ok
	}
	if !ok {
		s.fail()
	}
}

// digits passes over digits and returns how many.
func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.b) && '0' <= s.b[s.at] && s.b[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}
