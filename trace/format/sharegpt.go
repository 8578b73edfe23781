package format

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// maxConversation is the longest conversation that is accepted, in bytes.
const maxConversation = 64 << 20

// sharegpt is the source of a ShareGPT file, which has only texts. Each response
// is a request; its prompt is everything before it.
type sharegpt struct {
	lines
	counter tokenCounter
	marks   []byte              // unknown keys of rows
	rows    []trace.Request     // left of the current conversation
	names   map[uint64]struct{} // hashes of the sessions' names
	number  int                 // of the current conversation
}

func newShareGPT(t textFiles, c tokenCounter) *sharegpt {
	t.notes.say("no arrivals: ShareGPT has none (set a rate to add arrivals)")
	s := &sharegpt{lines: lines{textFiles: t, next: t.files[0].text.objects(maxConversation)}, counter: c, names: map[uint64]struct{}{}}
	s.parse = s.conversation
	how := "counted from the texts, without a chat template"
	if c == nil {
		how = "estimated from the texts, and marked as estimated"
		s.marks = []byte(`{"estimated": ["input_length", "output_length"]}`)
	}
	t.notes.say("lengths are %s; the texts are left out", how)
	return s
}

func (s *sharegpt) Read(r *trace.Request) error {
	for len(s.rows) == 0 {
		if err := s.lines.Read(r); err != nil {
			return err
		}
	}
	*r = s.rows[0]
	s.rows = s.rows[1:]
	return nil
}

// conversation makes the rows of one conversation.
func (s *sharegpt) conversation(raw []byte, _ *trace.Request) error {
	s.number++
	s.place = fmt.Sprintf("conversation %d: ", s.number)
	var messages []byte
	var rows []trace.Request
	name := ""
	conversations := into(&messages, parseArray)
	err := readRow(raw, keys{{"conversations", conversations}, {"conversation", conversations}, {"id", into(&name, parseName)}}, nil, nil)
	switch {
	case err != nil:
		return err
	case messages == nil:
		return fmt.Errorf("no conversations in %s", Quote(raw))
	}
	session := s.uniqueName(name)
	before, i := 0, 0
	err = jsonscan.Elements(messages, func(_ int, raw []byte) error {
		response, tokens, err := s.message(raw)
		if err != nil {
			return fmt.Errorf("conversations[%d]%w", i, err)
		}
		i++
		switch {
		case !response:
		case before == 0:
			s.notes.count("responses left out, with no question before them")
		case tokens == 0:
			s.notes.count("empty responses left out")
		default:
			rows = append(rows, trace.Request{InputLength: min(before, trace.MaxLength), OutputLength: min(tokens, trace.MaxLength), SessionID: session, Extra: s.marks})
		}
		before += tokens
		return nil
	})
	if err != nil {
		return err
	}
	if s.rows = rows; len(rows) == 0 {
		s.notes.count("conversations without a response left out")
	}
	return nil
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

// message counts the tokens of a message. Its errors follow the name of the message.
func (s *sharegpt) message(raw []byte) (response bool, tokens int, err error) {
	var from, value trace.Opt[string]
	role, text := optional(&from, parseString), optional(&value, parseString)
	err = readMembers(".", raw, keys{{"from", role}, {"role", role}, {"value", text}, {"content", text}}, nil, nil)
	if err == nil && !(from.Set && value.Set) {
		err = fmt.Errorf(" needs both from and value: %s", Quote(raw))
	}
	if err != nil {
		return false, 0, err
	}
	tokens, err = s.counter.tokens(value.Value)
	return slices.Contains([]string{"gpt", "assistant", "chatgpt", "bing", "bard", "model"}, from.Value), tokens, keyed(":", err)
}
