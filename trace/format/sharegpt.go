package format

import (
	"fmt"
	"io"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// maxConversation is the longest conversation that is accepted, in bytes.
const maxConversation = 64 << 20

// sharegpt is the source of a ShareGPT file, which has only texts. Each answer
// is a request; its prompt is everything before it.
type sharegpt struct {
	file    *textFile
	objects *objectReader
	notes   *notes
	counter tokenCounter
	marks   []byte // Extra of every row

	turns   []exchange          // left of the current conversation
	session string              // of the current conversation
	names   map[uint64]struct{} // hashes of the sessions' names
	number  int
}

// exchange is a prompt and its answer, in tokens.
type exchange struct{ isl, osl int }

func newShareGPT(f *textFile, n *notes, c tokenCounter) *sharegpt {
	s := &sharegpt{file: f, objects: newObjectReader(f.text, maxConversation), notes: n, counter: c, names: map[uint64]struct{}{}}
	n.say("no arrivals: ShareGPT has none (set a rate to add arrivals)")
	if c.exact() {
		n.say("lengths are counted from the texts, without a chat template; the texts are left out")
	} else {
		n.say("lengths are estimated from the texts, and marked as estimated; the texts are left out")
		s.marks = []byte(`{"estimated": ["input_length", "output_length"]}`)
	}
	return s
}

func (s *sharegpt) Line() int    { return s.objects.atLine }
func (s *sharegpt) Close() error { return s.file.Close() }

func (s *sharegpt) Read(r *trace.Request) error {
	for len(s.turns) == 0 {
		raw, err := s.objects.next()
		if err == io.EOF {
			return io.EOF
		}
		if err != nil {
			return &trace.RowError{File: s.file.name, Line: s.objects.atLine, Err: err}
		}
		s.number++
		if err := s.conversation(raw); err != nil {
			s.turns = nil
			return &trace.RowError{File: s.file.name, Line: s.objects.atLine, Err: fmt.Errorf("conversation %d: %w", s.number, otherFormat(err, raw, ShareGPT))}
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
	var messages []byte
	name := ""
	conversations := into(&messages, parseArray)
	err := readMembers("", raw, keys{{"conversations", conversations}, {"conversation", conversations}, {"id", into(&name, parseName)}}, nil, nil)
	switch {
	case err != nil:
		return err
	case messages == nil:
		return fmt.Errorf("no conversations in %s", Quote(raw))
	}
	s.session = s.uniqueName(name)
	before, i := 0, 0
	err = jsonscan.Elements(messages, func(_ int, raw []byte) error {
		answer, tokens, err := s.message(raw)
		if err != nil {
			return fmt.Errorf("conversations[%d]%w", i, err)
		}
		i++
		switch {
		case !answer:
		case before == 0:
			s.notes.count("answers left out, with no question before them")
		case tokens == 0:
			s.notes.count("empty answers left out")
		default:
			s.turns = append(s.turns, exchange{min(before, trace.MaxLength), min(tokens, trace.MaxLength)})
		}
		before += tokens
		return nil
	})
	if err == nil && len(s.turns) == 0 {
		s.notes.count("conversations without an answer left out")
	}
	return err
}

// parseName returns a string without its quotes, or another value as it is.
func parseName(raw []byte) (string, error) {
	if raw[0] == '"' {
		return parseString(raw)
	}
	return string(raw), nil
}

// uniqueName returns the name of a conversation's session. In some files a name
// occurs twice.
func (s *sharegpt) uniqueName(name string) string {
	for {
		hash := xxhash.Sum64String(name)
		if _, taken := s.names[hash]; name != "" && !taken {
			s.names[hash] = struct{}{}
			return name
		}
		name += "#" + strconv.Itoa(s.number)
	}
}

// message parses one message and counts its tokens.
func (s *sharegpt) message(raw []byte) (answer bool, tokens int, err error) {
	if _, err := parseObject(raw); err != nil {
		return false, 0, fmt.Errorf(" %w", err)
	}
	var from, value trace.Opt[string]
	role, text := optional(&from, parseString), optional(&value, parseString)
	err = readMembers(".", raw, keys{{"from", role}, {"role", role}, {"value", text}, {"content", text}}, nil, nil)
	if err == nil && !(from.Set && value.Set) {
		err = fmt.Errorf(" needs both from and value: %s", Quote(raw))
	}
	if err != nil {
		return false, 0, err
	}
	switch from.Value {
	case "gpt", "assistant", "chatgpt", "bing", "bard", "model":
		answer = true
	}
	if tokens, err = s.counter.tokens(value.Value); err != nil {
		return false, 0, fmt.Errorf(": %w", err)
	}
	return answer, tokens, nil
}
