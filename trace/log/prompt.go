package log

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"moontide/trace/block"
	"moontide/trace/jsonscan"
)

// The APIs whose requests are read.
const (
	Completions = "completions" // OpenAI's and most servers' /v1/completions
	Chat        = "chat"        // /v1/chat/completions
	Responses   = "responses"   // OpenAI's /v1/responses
	Messages    = "messages"    // Anthropic's /v1/messages
	Generate    = "generate"    // SGLang's /generate
)

// promptMembers are the members of a body that make up the prompt, in the order in which
// chat templates have them.
var promptMembers = map[string][]string{
	Completions: {"prompt"},
	Chat:        {"tools", "functions", "messages"},
	Responses:   {"tools", "instructions", "input"},
	Messages:    {"tools", "system", "messages"},
	Generate:    {"input_ids", "text"}, // SGLang ignores the text beside ids
}

// Config is how prompts are read and hashed. Key must be set.
type Config struct {
	Key Key
	// BlockSize is the number of tokens of a block; 0 is block.DefaultSize.
	BlockSize int
	// Encoder turns texts into tokens. Without one, lengths that the server does not
	// tell and block ids of texts are estimated, and marked so. EncoderID is different
	// for each vocabulary, so that traces made with different ones share no ids.
	Encoder   Encoder
	EncoderID string
	// BytesPerToken is the assumed size of a token without an encoder; 0 is 4.
	BytesPerToken float64
	// SessionField names the member of the body, such as metadata.chat_id, that has the
	// name of a request's session. Without a name, a session is found by its prompts:
	// each continues the one before.
	SessionField string
}

// Encoder appends the tokens of a text: see tokenizer.Tokenizer. It is used concurrently.
type Encoder interface {
	Append(dst []uint32, text string) ([]uint32, error)
}

const maxBlockSize = 1 << 20

// Check returns an error if the configuration is not valid.
func (c Config) Check() error {
	switch {
	case c.Key == Key{}:
		return errors.New("key is missing")
	case c.BlockSize < 0 || c.BlockSize > maxBlockSize:
		return fmt.Errorf("block size %d is outside of 1 to %d", c.BlockSize, maxBlockSize)
	case !(c.BytesPerToken == 0 || c.BytesPerToken >= 0.1 && c.BytesPerToken <= 100):
		return fmt.Errorf("%v bytes per token is outside of 0.1 to 100", c.BytesPerToken)
	}
	return nil
}

// WithDefaults returns c with all zero values replaced.
func (c Config) WithDefaults() Config {
	c.BlockSize, c.BytesPerToken = cmp.Or(c.BlockSize, block.DefaultSize), cmp.Or(c.BytesPerToken, 4)
	return c
}

// Tokens returns the number of tokens of a text, or false if there is no encoder or it
// fails.
func (c Config) Tokens(text string) (int, bool) {
	if text == "" || c.Encoder == nil {
		return 0, false
	}
	ids, err := c.Encoder.Append(nil, text)
	return len(ids), err == nil
}

// Call is what the body of a request tells. It holds the prompt as bytes only until
// its ids are known.
type Call struct {
	Model     string
	MaxTokens int // 0 if not given
	Priority  int
	Session   string // from the field that names it

	// content is what a server computes, in an order in which a longer conversation begins
	// with a shorter one (tools, system prompt, messages): token ids, 4 bytes each, or text.
	content []byte
	tokens  bool // content holds token ids
	// exact is whether the content has all tokens of the prompt and no others. If not,
	// it has marks for the structure of a chat in place of its template's.
	exact  bool
	length int // of the content, in tokens or bytes
}

// TextLength returns the length of the prompt in bytes if it is a text that was not
// encoded.
func (c *Call) TextLength() (bytes int, ok bool) { return c.length, !c.tokens }

// Errors of reading a body. They quote none of it.
var (
	ErrNotJSON = errors.New("the body is not a JSON object")
	ErrBatch   = errors.New("a request has several prompts")
)

// Reader reads and hashes bodies. It is not safe for concurrent use.
type Reader struct {
	cfg  Config
	ids  *ids
	call *Call
	err  error
}

// NewReader returns a reader. The configuration must be valid.
func NewReader(cfg Config) *Reader {
	return &Reader{cfg: cfg.WithDefaults(), ids: newIDs(cfg.Key.Keys().Blocks)}
}

// Read reads the body of a request to an API. The result does not refer to body.
func (r *Reader) Read(api string, body []byte) (*Call, error) {
	m, err := membersOf(bytes.TrimLeft(body, " \t\r\n"))
	if err != nil || !json.Valid(body) {
		return nil, ErrNotJSON
	}
	return r.ReadMembers(api, m)
}

// ReadMembers is Read for the members of a body, each of which must be valid JSON.
func (r *Reader) ReadMembers(api string, body map[string][]byte) (*Call, error) {
	encodes := r.cfg.Encoder != nil
	c := &Call{Model: textOf(body["model"]), Priority: integer(string(body["priority"])), Session: Lookup(body, r.cfg.SessionField), tokens: encodes, exact: encodes}
	for _, limit := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "sampling_params.max_new_tokens"} {
		c.MaxTokens = max(c.MaxTokens, integer(Lookup(body, limit)))
	}
	r.call, r.err = c, nil
	for _, name := range promptMembers[api] {
		whole := name == "prompt" || name == "text" || name == "input_ids" || name == "input"
		switch raw := body[name]; {
		case len(raw) == 0, api == Generate && c.content != nil:
		case raw[0] == '"' && whole:
			r.addText(raw)
		case raw[0] == '[' && whole && name != "input":
			r.addIDs(raw)
		default: // it has a structure, which a chat template writes
			c.exact = false
			r.addValue(name, raw, 0)
		}
	}
	if c.length = len(c.content); c.tokens {
		c.length /= 4
	}
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

// integer returns a number from 0 to math.MaxInt32, 0 for anything else.
func integer(text string) int {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return int(n)
	}
	return 0
}

// addIDs adds a prompt of token ids.
func (r *Reader) addIDs(array []byte) {
	p := r.call
	p.tokens, p.exact, p.content = true, true, make([]byte, 0, len(array))
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
	p, s := r.call, textOf(raw)
	if r.cfg.Encoder == nil {
		p.content = append(p.content, s...)
		return
	}
	ids, err := r.cfg.Encoder.Append(nil, s)
	if err != nil {
		r.err = fmt.Errorf("encoding prompt: %w", err)
	}
	for _, id := range ids {
		p.content = binary.LittleEndian.AppendUint32(p.content, id)
	}
}

// Members that no template writes and that change between turns, or stand for something
// that is written elsewhere; and members that hold something other than text, usually
// long, which are hashed whole.
var (
	unstable = strings.Fields("cache_control id call_id tool_call_id tool_use_id status annotations logprobs signature")
	media    = strings.Fields("url image_url data file_data file_id encrypted_content")
)

// addValue adds a value of a structure, and marks where an object begins and ends and
// where its members begin: about as many as a chat template adds tokens.
func (r *Reader) addValue(key string, raw []byte, depth int) {
	switch first := raw[0]; {
	case depth >= jsonscan.MaxDepth:
		r.mark(string(raw))
	case first == '{':
		if part, ok := textPart(raw); ok { // the same as its text alone
			r.addValue(key, part, depth+1)
			return
		}
		r.mark("{")
		jsonscan.Members(raw, func(key []byte, _ int, value []byte) error {
			if name := string(key); name == "parts" { // OpenTelemetry's content
				r.addValue("content", value, depth+1)
			} else if !slices.Contains(unstable, name) {
				r.addValue(name, value, depth+1)
			}
			return nil
		})
		r.mark("}")
	case first == '[':
		elements(raw, func(value []byte) { r.addValue(key, value, depth+1) })
	case first == '"':
		if r.mark(key); slices.Contains(media, key) {
			r.mark(textOf(raw))
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
	p, sum := r.call, xxhash.Sum64String(s)
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
			kind = textOf(value)
		case "text", "content": // content: OpenTelemetry's
			raw = value
		}
		return nil
	})
	return raw, len(raw) > 0 && raw[0] == '"' && (kind == "text" || kind == "input_text" || kind == "output_text")
}

// Blocks are the block ids of a prompt, and the prompt until [Sessions.Join] has seen it.
type Blocks struct {
	ids        []uint64          // of the scope, then of all blocks
	sum        [sha256.Size]byte // of the last
	content    []byte
	blockBytes int
}

// Hash returns the block ids of the prompt of a call. It releases the prompt from the
// call; the result holds it until its session is found. The id of block i is that of
//
//	h(i) = HMAC-SHA256(key, h(i-1) || content of block i)
//
// so it identifies the whole prefix. h(0) is that of the model and of how the text is cut:
// calls that differ in these share no ids. The probability that any two of n different
// prefixes get the same id is about n*n/2^54: 0.6 % for ten million blocks.
func (r *Reader) Hash(c *Call) *Blocks {
	kind, size := "tokens", 4*r.cfg.BlockSize
	if !c.tokens {
		kind, size = "text", max(1, int(math.Round(r.cfg.BytesPerToken*float64(r.cfg.BlockSize))))
	}
	x := r.ids
	x.sum = [sha256.Size]byte{}
	b := &Blocks{content: c.content, blockBytes: size}
	b.ids = append(b.ids, x.next(fmt.Appendf(nil, "%s %d %q %q", kind, size, r.cfg.EncoderID, c.Model)))
	for block := range slices.Chunk(c.content, size) {
		b.ids = append(b.ids, x.next(block))
	}
	b.sum, c.content = x.sum, nil
	return b
}

// fit returns the ids of a prompt that has a number of blocks by the server's count. If
// the server counts more, because its chat template adds tokens, further ids follow from
// the last. If it counts fewer, the last one stands for the rest of the prompt: left out,
// prompts that differ in their ends would seem equal.
func (b *Blocks) fit(k Key, count int) []uint64 {
	all := b.ids[1:]
	if count == len(all) || count == 0 {
		return all[:count]
	}
	x := newIDs(k)
	x.sum = b.sum
	all = slices.Clone(all[:min(count-1, len(all))])
	for len(all) < count {
		all = append(all, x.next(nil))
	}
	return all
}
