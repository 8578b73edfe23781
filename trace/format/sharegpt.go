package format

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// mostConversation is the longest conversation in bytes that is read.
const mostConversation = 64 << 20

// sharegpt is the source of a ShareGPT file, which has texts alone. Each answer
// is a request, whose prompt is all that was said before it.
type sharegpt struct {
	in     *Text
	name   string
	values *values
	notes  *notes
	count  counter
	marks  []byte // of every row

	turns   []exchange          // of the conversation that is being read
	session string              // of it
	begun   map[uint64]struct{} // hashes of the sessions' names
	number  int
	stopped bool
}

// exchange is a question, with all before it, and its answer.
type exchange struct{ isl, osl int }

func newShareGPT(in *Text, name string, n *notes, c counter) *sharegpt {
	s := &sharegpt{in: in, name: name, values: newValues(in, mostConversation), notes: n, count: c, begun: map[uint64]struct{}{}}
	n.say("there are no arrivals: convert --rate gives some")
	if c.exact() {
		n.say("lengths are counted from the texts, without a chat template; the texts are left out")
	} else {
		n.say("lengths are estimated from the texts, and marked as such; the texts are left out")
		s.marks = []byte(`{"estimated": ["input_length", "output_length"]}`)
	}
	return s
}

func (s *sharegpt) Line() int    { return s.values.atLine }
func (s *sharegpt) Close() error { return s.in.Close() }

func (s *sharegpt) Read(r *trace.Request) error {
	for len(s.turns) == 0 {
		if s.stopped {
			return io.EOF
		}
		raw, err := s.values.next()
		if err == io.EOF {
			s.stopped = true
			return io.EOF
		}
		if err != nil { // what follows cannot be told apart from it
			s.stopped = true
			return &trace.RowError{File: s.name, Line: s.values.line, Err: err}
		}
		s.number++
		if err := s.conversation(raw); err != nil {
			s.turns = nil
			return &trace.RowError{File: s.name, Line: s.values.atLine, Err: fmt.Errorf("conversation %d: %w", s.number, mixed(err, raw, ShareGPT))}
		}
	}
	*r = trace.Request{InputLength: s.turns[0].isl, OutputLength: s.turns[0].osl, SessionID: s.session, Extra: s.marks}
	s.turns = s.turns[1:]
	return nil
}

// conversation makes requests of one conversation.
func (s *sharegpt) conversation(raw []byte) error {
	if err := validObject(raw); err != nil {
		return err
	}
	var said []byte
	name := ""
	err := members(raw, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "conversations", "conversation":
			said, err = raw, array(raw)
		case "id":
			if name = string(raw); raw[0] == '"' {
				name, err = text(raw)
			}
		}
		return keyed(string(key), err)
	})
	switch {
	case err != nil:
		return err
	case said == nil:
		return fmt.Errorf("no conversations in %s", Quote(raw))
	}
	s.session = s.unused(name)
	before, i := 0, 0
	err = jsonscan.Elements(said, func(_ int, raw []byte) error {
		answer, tokens, err := s.message(raw)
		if err != nil {
			return fmt.Errorf("conversations[%d]%w", i, err)
		}
		i++
		switch {
		case !answer:
		case before == 0:
			s.notes.count("answers left out, which stand before any question")
		case tokens == 0:
			s.notes.count("answers left out, which are empty")
		default:
			s.turns = append(s.turns, exchange{min(before, trace.MaxLength), min(tokens, trace.MaxLength)})
		}
		before += tokens
		return nil
	})
	if err == nil && len(s.turns) == 0 {
		s.notes.count("conversations left out, in which nothing is answered")
	}
	return err
}

// unused is the name of a conversation's session. Some files have a name twice.
func (s *sharegpt) unused(name string) string {
	for {
		hash := xxhash.Sum64String(name)
		if _, taken := s.begun[hash]; name != "" && !taken {
			s.begun[hash] = struct{}{}
			return name
		}
		name += "#" + strconv.Itoa(s.number)
	}
}

// message reads who says something, and counts it.
func (s *sharegpt) message(raw []byte) (answer bool, tokens int, err error) {
	if raw[0] != '{' {
		return false, 0, fmt.Errorf(" is not an object: %s", Quote(raw))
	}
	var from, value string
	var whose, said bool
	err = members(raw, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "from", "role":
			from, err = text(raw)
			whose = true
		case "value", "content":
			value, err = text(raw)
			said = true
		}
		if err != nil {
			return fmt.Errorf(".%s %w", key, err)
		}
		return nil
	})
	if errors.As(err, &jsonscan.DuplicateKeyError{}) {
		err = fmt.Errorf(": %w", err)
	}
	if err == nil && (!whose || !said) {
		err = fmt.Errorf(" has not both from and value: %s", Quote(raw))
	}
	if err != nil {
		return false, 0, err
	}
	switch from {
	case "gpt", "assistant", "chatgpt", "bing", "bard", "model":
		answer = true
	}
	if tokens, err = s.count.tokens(value); err != nil {
		return false, 0, fmt.Errorf(": %w", err)
	}
	return answer, tokens, nil
}
