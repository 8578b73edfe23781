package openai

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"sync"

	"moontide/replay"
	"moontide/replay/prompt"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Prepare makes the request of a row. A row with its own text (messages for chat,
// text_input for either endpoint) is sent unchanged; otherwise the prompt is
// generated from the block ids.
func (c *Client) Prepare(r trace.Request, row int) (replay.Call, error) {
	call, err := c.prepare(r, row)
	if err != nil {
		return nil, err
	}
	c.digest.add(row, call.body[call.promptStart:call.promptEnd])
	return call, nil
}

// PrepareAgain makes the request of a row again after the server refused it.
// PromptDigest does not count it again.
func (c *Client) PrepareAgain(r trace.Request, row int) (replay.Call, error) {
	call, err := c.prepare(r, row)
	if err != nil {
		return nil, err
	}
	return call, nil
}

func (c *Client) prepare(r trace.Request, row int) (*call, error) {
	model := c.modelOf(r, row)
	head := c.headOf(model)
	body := c.startBody(head, r.InputLength)
	body, turn, err := c.appendRow(body, r, row)
	if err != nil {
		return nil, err
	}
	end := len(body)
	call := c.newCall(c.server(r, row), r.SessionID, c.finishBody(body, r.OutputLength), r.OutputLength)
	call.promptStart, call.promptEnd = len(head), end
	call.cancelAfter = c.cfg.CancelAfter
	if turn != nil {
		call.continued, call.kept = turn, turn.kept
	}
	if c.severalModels() {
		call.model = model
	}
	if onToken := c.cfg.OnToken; onToken != nil {
		call.onToken = func(data []byte) { onToken(row, data) }
	}
	return call, nil
}

// Warmup returns a client on the same connections whose requests have the lengths
// of the rows but other text, so that no measured prompt is cached. They are
// excluded from PromptDigest and OnToken.
func (c *Client) Warmup() replay.Client { return warmup{c} }

type warmup struct{ client *Client }

// Prepare implements replay.Client.
func (w warmup) Prepare(r trace.Request, row int) (replay.Call, error) {
	c := w.client
	body, err := c.fillerBody("warm-up "+strconv.Itoa(row), c.exactLength(r.InputLength), r.OutputLength)
	if err != nil {
		return nil, err
	}
	return c.newCall(c.server(trace.Request{}, row), "", body, r.OutputLength), nil
}

// fillerBody returns the body of a request that belongs to no row.
func (c *Client) fillerBody(name string, isl, osl int) ([]byte, error) {
	body, err := c.appendPrompt(c.startBody(c.layout.head, isl), trace.Request{}, c.cfg.Source.Filler(name, isl))
	if err != nil {
		return nil, err
	}
	return c.finishBody(body, osl), nil
}

func (c *Client) startBody(head []byte, isl int) []byte {
	const perToken = 6 // five digits and a comma, or a word
	return append(make([]byte, 0, len(head)+len(c.layout.tail)+128+perToken*isl), head...)
}

// finishBody appends the part after the prompt. An output length of 0 is not
// possible and becomes 1.
func (c *Client) finishBody(body []byte, osl int) []byte {
	l := &c.layout
	osl = max(osl, 1)
	body = strconv.AppendInt(append(body, l.limit...), int64(osl), 10)
	if l.least != nil {
		body = strconv.AppendInt(append(body, l.least...), int64(osl), 10)
	}
	return append(body, l.tail...)
}

// appendPrompt appends the prompt of a row: its own messages or text, or else p,
// as text or as token ids.
func (c *Client) appendPrompt(body []byte, r trace.Request, p prompt.Prompt) ([]byte, error) {
	if err := c.api.accepts(r); err != nil {
		return nil, err
	}
	if key := c.api.messages; key != "" {
		if messages, ok := r.Raw("messages"); ok {
			return append(fmt.Appendf(body, `,%q:`, key), messages...), nil
		}
	}
	text, own := ownText(r)
	switch {
	case own:
		body = append(append(body, c.api.text...), text...)
	case c.cfg.Prompt == Tokens:
		body = p.AppendJSONTokens(append(body, c.api.ids...))
	default:
		body = append(p.AppendText(append(append(body, c.api.text...), '"')), '"')
	}
	return append(body, c.api.after...), nil
}

// Accepts returns an error if a row cannot be sent to an endpoint.
func Accepts(endpoint string, r trace.Request) error { return apiOf(endpoint).accepts(r) }

func (a *api) accepts(r trace.Request) error {
	if _, isText := ownText(r); a.messages != "" || isText {
		return nil
	}
	if _, isChat := r.Raw("messages"); isChat {
		return errors.New("the row has messages: they need the chat endpoint")
	}
	return nil
}

// ownText returns the row's own text, as a JSON string.
func ownText(r trace.Request) (raw string, ok bool) {
	if _, ok := r.Text("text_input"); !ok {
		return "", false
	}
	return r.Raw("text_input")
}

// setLayout sets what all requests have in common.
func (c *Client) setLayout() {
	c.api = apiOf(c.cfg.Endpoint)
	for _, s := range c.servers {
		s.head.SetRequestURI(s.target(s.base.requestPath(c.api.name)))
		for _, h := range c.api.headers {
			if s.head.Peek(h.Name) == nil {
				s.head.Set(h.Name, h.Value)
			}
		}
	}
	c.layout = c.layoutOf(c.cfg.Model)
	c.heads = map[string][]byte{c.cfg.Model: c.layout.head}
	for _, m := range c.cfg.allModels() {
		c.heads[m.Name] = c.layoutOf(m.Name).head
	}
}

func (c *Client) layoutOf(model string) layout {
	return c.api.layout(members{model: model, caps: &c.caps, sampling: c.sampling, extra: c.extra})
}

// headOf returns the start of the body of a request for a model.
func (c *Client) headOf(model string) []byte {
	if head, ok := c.heads[model]; ok {
		return head
	}
	return c.layoutOf(model).head
}

// reservedKeys holds the keys that ExtraBody cannot set.
var reservedKeys = []string{
	"model", "prompt", "messages", "input", "input_ids", "stream", "stream_options", "sampling_params",
	"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "n",
}

// extraMembers returns the members of Config.ExtraBody, sorted by key, and the
// sampling parameters.
func extraMembers(cfg Config) (extra, sampling []member, err error) {
	values := map[string]raw{}
	if cfg.ExtraBody != "" {
		if err := jsonscan.Strict.UnmarshalFromString(cfg.ExtraBody, &values); err != nil || values == nil {
			return nil, nil, errors.New("extra body is not a JSON object")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(reservedKeys, key) {
			return nil, nil, fmt.Errorf("extra body has %q, which the replay sets", key)
		}
		extra = append(extra, member{key, values[key]})
	}
	for _, p := range []struct {
		key   string
		value trace.Opt[float64]
	}{{"temperature", cfg.Temperature}, {"top_p", cfg.TopP}} {
		if !p.value.Set {
			continue
		}
		if _, twice := values[p.key]; twice {
			return nil, nil, fmt.Errorf("extra body has %q, which has an option of its own: remove one of them", p.key)
		}
		sampling = append(sampling, member{p.key, strconv.AppendFloat(nil, p.value.Value, 'g', -1, 64)})
	}
	return extra, sampling, nil
}

// digest is a sum of hashes, so it does not depend on their order.
type digest struct {
	mu   sync.Mutex
	sum  big.Int
	hash big.Int // hash of the last row; kept to reuse its memory
}

func (d *digest) add(row int, prompt []byte) {
	h := sha256.New()
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(row))
	h.Write(number[:])
	h.Write(prompt)
	d.addHash(h.Sum(nil))
}

func (d *digest) addHash(hash []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sum.Add(&d.sum, d.hash.SetBytes(hash))
}

// String returns the sum modulo 2^256 in hexadecimal.
func (d *digest) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	modulus := new(big.Int).Lsh(big.NewInt(1), 256)
	return fmt.Sprintf("%064x", modulus.Mod(&d.sum, modulus))
}

// PromptDigest returns the sum modulo 2^256, in hexadecimal, of SHA-256(row,
// prompt) over all prepared requests: the row as 8 bytes, big-endian, and the
// prompt as the body's member, from the comma before its key. Runs with equal
// digests sent equal prompts.
func (c *Client) PromptDigest() string { return c.digest.String() }
