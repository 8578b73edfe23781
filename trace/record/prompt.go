package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/bytedance/sonic"
	"github.com/cespare/xxhash/v2"

	"moontide/trace/jsonscan"
)

// Call is what the body of a request tells. It holds the prompt as bytes only until
// its ids are known.
type Call struct {
	Model     string
	MaxTokens int // 0 if not given
	Priority  int
	Stream    bool
	Session   string // from the field that names it
	prompt    prompt
	length    int // of the prompt, in tokens or bytes
}

// prompt is what a server computes, in an order in which a longer conversation begins
// with a shorter one: tools, system prompt, messages.
type prompt struct {
	// content holds token ids, 4 bytes each, or text.
	content []byte
	tokens  bool // content holds token ids
	// exact is whether the content has all tokens of the prompt and no others. If not,
	// it has marks for the structure of a chat in place of its template's.
	exact bool
}

// unit returns the number of bytes of what the prompt is made of.
func (p *prompt) unit() int {
	if p.tokens {
		return 4
	}
	return 1
}

func (p *prompt) kind() string {
	if p.tokens {
		return "tokens"
	}
	return "text"
}

// Errors of reading a body. They quote none of it.
var (
	ErrNotJSON = errors.New("the body is not a JSON object")
	ErrBatch   = errors.New("a request has several prompts")
)

// Reader reads bodies. It is not safe for concurrent use.
type Reader struct {
	cfg   Config
	ids   []uint32
	call  *Call
	depth int // of the value that is added
	err   error
}

// NewReader returns a reader. The configuration must be valid.
func NewReader(cfg Config) *Reader { return &Reader{cfg: cfg.WithDefaults()} }

// Read reads the body of a request to an API. The result does not refer to body.
func (r *Reader) Read(api string, body []byte) (*Call, error) {
	if !sonic.Valid(body) || !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte{'{'}) {
		return nil, ErrNotJSON
	}
	members := map[string][]byte{}
	err := jsonscan.Members(body, func(key []byte, _ int, raw []byte) error {
		members[string(key)] = raw
		return nil
	})
	if err != nil {
		return nil, ErrNotJSON
	}
	return r.ReadMembers(api, members)
}

// ReadMembers is Read for the members of a body, each of which must be valid JSON.
func (r *Reader) ReadMembers(api string, members map[string][]byte) (*Call, error) {
	encodes := r.cfg.Encoder != nil
	c := &Call{prompt: prompt{tokens: encodes, exact: encodes}}
	r.call, r.err = c, nil
	c.Model = text(members["model"])
	c.Priority = integer(members["priority"])
	c.Stream = string(members["stream"]) == "true"
	for _, limit := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "sampling_params.max_new_tokens"} {
		c.MaxTokens = max(c.MaxTokens, integer([]byte(Lookup(members, limit))))
	}
	c.Session = Lookup(members, r.cfg.SessionField)
	for _, part := range promptMembers[api] {
		if raw, ok := members[part]; ok {
			r.add(part, raw)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	c.length = len(c.prompt.content) / c.prompt.unit()
	return c, nil
}

// promptMembers lists the members of a body that make up the prompt, in the order in
// which chat templates have them.
var promptMembers = map[string][]string{
	Completions: {"prompt"},
	Chat:        {"tools", "functions", "messages"},
	Responses:   {"tools", "instructions", "input"},
	Messages:    {"tools", "system", "messages"},
	Generate:    {"text", "input_ids"},
}

// add adds a member of the body. A member that is text or token ids is the whole
// prompt; any other has a structure, which a chat template writes.
func (r *Reader) add(key string, raw []byte) {
	whole := key == "prompt" || key == "text" || key == "input_ids" || key == "input"
	switch {
	case string(raw) == "null":
	case raw[0] == '"' && whole:
		r.addText(raw)
	case raw[0] == '[' && whole && key != "input":
		r.addIDs(raw)
	default:
		r.call.prompt.exact = false
		r.addValue(key, raw)
	}
}

// addIDs adds a prompt of token ids.
func (r *Reader) addIDs(array []byte) {
	p := &r.call.prompt
	if len(p.content) > 0 {
		r.err = ErrBatch
		return
	}
	p.tokens, p.exact = true, true
	p.content = make([]byte, 0, len(array))
	c := jsonscan.New(array)
	for more := c.Open('['); more; more = c.More(']') {
		p.content = binary.LittleEndian.AppendUint32(p.content, uint32(c.Int(math.MaxUint32)))
	}
	if !c.Done() { // texts, or lists of ids
		r.err = ErrBatch
	}
}

// addText adds the text of a JSON string.
func (r *Reader) addText(raw []byte) {
	p, s := &r.call.prompt, text(raw)
	if r.cfg.Encoder == nil {
		p.content = append(p.content, s...)
		return
	}
	var err error
	if r.ids, err = r.cfg.Encoder.Append(r.ids[:0], s); err != nil {
		r.err = fmt.Errorf("encoding prompt: %w", err)
		return
	}
	for _, id := range r.ids {
		p.content = binary.LittleEndian.AppendUint32(p.content, id)
	}
	clear(r.ids) // they are the text, which must not be kept
}

// unstable lists the members of messages and tools that no template writes and that
// change between turns, or stand for something that is written elsewhere.
var unstable = map[string]bool{"cache_control": true, "id": true, "call_id": true, "tool_call_id": true, "tool_use_id": true, "status": true, "annotations": true, "logprobs": true, "signature": true}

// media lists the members that hold something other than text, usually long. They are
// hashed whole.
var media = map[string]bool{"url": true, "image_url": true, "data": true, "file_data": true, "file_id": true, "encrypted_content": true}

// addValue adds a value of a structure, and marks where an object begins and ends and
// where its members begin: about as many as a chat template adds tokens.
func (r *Reader) addValue(key string, raw []byte) {
	r.depth++
	defer func() { r.depth-- }()
	switch first := raw[0]; {
	case r.depth > jsonscan.MaxDepth:
		r.mark(string(raw))
	case first == '{':
		if part, ok := textPart(raw); ok { // the same as its text alone
			r.addValue(key, part)
			return
		}
		r.mark("{")
		jsonscan.Members(raw, func(key []byte, _ int, value []byte) error {
			if name := string(key); name == "parts" { // OpenTelemetry's content
				r.addValue("content", value)
			} else if !unstable[name] {
				r.addValue(name, value)
			}
			return nil
		})
		r.mark("}")
	case first == '[':
		jsonscan.Elements(raw, func(_ int, value []byte) error {
			r.addValue(key, value)
			return nil
		})
	case first == '"':
		if r.mark(key); media[key] {
			r.mark(text(raw))
			return
		}
		r.addText(raw)
	default: // a number, a truth value or null
		r.mark(key + ":" + string(raw))
	}
}

// markBit is set in marks and in no token id.
const markBit = 1 << 31

// mark adds one token, or one character for texts, which stands for s.
func (r *Reader) mark(s string) {
	p, sum := &r.call.prompt, xxhash.Sum64String(s)
	if p.tokens {
		p.content = binary.LittleEndian.AppendUint32(p.content, markBit|uint32(sum))
		return
	}
	// Bytes that UTF-8 does not have: no text is taken for a mark.
	p.content = append(p.content, 0xf8|byte(sum&7), byte(sum>>3), byte(sum>>11), byte(sum>>19))
}

// textPart returns the text of a part of a message that has no more than a text.
func textPart(object []byte) (raw []byte, ok bool) {
	var kind string
	jsonscan.Members(object, func(key []byte, _ int, value []byte) error {
		switch string(key) {
		case "type":
			kind = text(value)
		case "text", "content": // content: OpenTelemetry's
			raw = value
		}
		return nil
	})
	return raw, len(raw) > 0 && raw[0] == '"' && (kind == "text" || kind == "input_text" || kind == "output_text")
}

// text returns a JSON string, "" for other values.
func text(raw []byte) (s string) {
	if len(raw) > 1 && raw[0] == '"' {
		if bytes.IndexByte(raw, '\\') < 0 {
			return string(raw[1 : len(raw)-1])
		}
		_ = jsonscan.Strict.Unmarshal(raw, &s)
	}
	return s
}

func integer(raw []byte) int {
	c := jsonscan.New(raw)
	if n := c.Int(math.MaxInt32); c.Done() {
		return n
	}
	return 0
}

// Lookup returns the string or number in the member that a field names, such as chat or
// metadata.chat; "" if there is none.
func Lookup(members map[string][]byte, field string) string {
	if raw, ok := members[field]; ok {
		return valueAt(raw, "")
	}
	name, path, _ := strings.Cut(field, ".")
	return valueAt(members[name], path)
}

// valueAt returns the string or number at a path within a value, such as "chat" or
// "user.chat", or the value itself if the path is empty; "" if there is none.
func valueAt(raw []byte, path string) (value string) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case path == "" && raw[0] == '"':
		return text(raw)
	case path == "" && raw[0] != '{' && raw[0] != '[':
		return string(raw)
	case path == "" || raw[0] != '{':
		return ""
	}
	name, rest, _ := strings.Cut(path, ".")
	jsonscan.Members(raw, func(key []byte, _ int, member []byte) error {
		if string(key) == name {
			value = valueAt(member, rest)
		}
		return nil
	})
	return value
}
