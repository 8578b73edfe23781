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
	c.digest.add(row, call.body[len(c.beforePrompt):call.promptEnd])
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
	body := c.startBody(r.InputLength)
	p := r
	p.InputLength = c.exactLength(r.InputLength)
	body, err := c.appendPrompt(body, r, c.cfg.Source.Prompt(p, row))
	if err != nil {
		return nil, err
	}
	end := len(body)
	call := c.newCall(c.server(r, row), r.SessionID, c.finishBody(body, r.OutputLength), r.OutputLength)
	call.promptEnd = end
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
	body, err := c.appendPrompt(c.startBody(isl), trace.Request{}, c.cfg.Source.Filler(name, isl))
	if err != nil {
		return nil, err
	}
	return c.finishBody(body, osl), nil
}

func (c *Client) startBody(isl int) []byte {
	return append(make([]byte, 0, c.bodySize(isl)), c.beforePrompt...)
}

func (c *Client) bodySize(isl int) int {
	const perToken = 6 // five digits and a comma, or a word
	return len(c.beforePrompt) + len(c.afterPrompt) + 128 + perToken*isl
}

// finishBody appends the part after the prompt. An output length of 0 is not
// possible and becomes 1.
func (c *Client) finishBody(body []byte, osl int) []byte {
	osl = max(osl, 1)
	body = strconv.AppendInt(append(body, `,"max_tokens":`...), int64(osl), 10)
	if c.minTokens && !slices.Contains(c.extraKeys, "min_tokens") {
		body = strconv.AppendInt(append(body, `,"min_tokens":`...), int64(osl), 10)
	}
	return append(body, c.afterPrompt...)
}

// appendPrompt appends the prompt of a row: its own messages or text, or else p,
// as text or as token ids.
func (c *Client) appendPrompt(body []byte, r trace.Request, p prompt.Prompt) ([]byte, error) {
	if err := Accepts(c.cfg.Endpoint, r); err != nil {
		return nil, err
	}
	before, after := `,"prompt":`, ""
	if c.cfg.Endpoint == Chat {
		if messages, ok := r.Raw("messages"); ok {
			return append(append(body, `,"messages":`...), messages...), nil
		}
		before, after = `,"messages":[{"role":"user","content":`, "}]"
	}
	body = append(body, before...)
	if text, ok := ownText(r); ok {
		body = append(body, text...)
	} else if c.cfg.Prompt == Tokens {
		body = p.AppendJSONTokens(body)
	} else {
		body = append(p.AppendText(append(body, '"')), '"')
	}
	return append(body, after...), nil
}

// Accepts returns an error if a row cannot be sent to an endpoint.
func Accepts(endpoint string, r trace.Request) error {
	if _, isText := ownText(r); endpoint == Chat || isText {
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

// setCommon sets the parts common to all bodies.
func (c *Client) setCommon() {
	c.beforePrompt = append(c.beforePrompt[:0], `{"model":`...)
	model, err := jsonscan.Strict.Marshal(c.cfg.Model)
	if err != nil {
		panic(err) // New and Probe accept UTF-8 only
	}
	c.beforePrompt = append(c.beforePrompt, model...)
	c.afterPrompt = append(c.afterPrompt[:0], `,"stream":true,"stream_options":{"include_usage":true`...)
	if c.chunkTokens&inUsage != 0 {
		c.afterPrompt = append(c.afterPrompt, `,"continuous_usage_stats":true`...)
	}
	c.afterPrompt = append(c.afterPrompt, '}')
	if c.chunkTokens&inTokenIDs != 0 && !slices.Contains(c.extraKeys, "return_token_ids") {
		c.afterPrompt = append(c.afterPrompt, `,"return_token_ids":true`...)
	}
	if c.ignoreEOS && !slices.Contains(c.extraKeys, "ignore_eos") {
		c.afterPrompt = append(c.afterPrompt, `,"ignore_eos":true`...)
	}
	c.afterPrompt = append(append(c.afterPrompt, c.extra...), '}')
}

// reservedKeys holds the keys that ExtraBody cannot set.
var reservedKeys = []string{"model", "prompt", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n"}

// extraMembers returns the members of Config.ExtraBody and the sampling
// parameters, each after a comma, sorted by key.
func extraMembers(cfg Config) (members []byte, keys []string, err error) {
	values := map[string]raw{}
	if cfg.ExtraBody != "" {
		if err := jsonscan.Strict.UnmarshalFromString(cfg.ExtraBody, &values); err != nil || values == nil {
			return nil, nil, errors.New("extra body is not a JSON object")
		}
	}
	for key, value := range map[string]trace.Opt[float64]{"temperature": cfg.Temperature, "top_p": cfg.TopP} {
		if !value.Set {
			continue
		}
		if _, twice := values[key]; twice {
			return nil, nil, fmt.Errorf("extra body has %q, which has an option of its own: remove one of them", key)
		}
		values[key] = strconv.AppendFloat(nil, value.Value, 'g', -1, 64)
	}
	keys = slices.Sorted(maps.Keys(values))
	for _, key := range keys {
		if slices.Contains(reservedKeys, key) {
			return nil, nil, fmt.Errorf("extra body has %q, which the replay sets", key)
		}
		quoted, err := jsonscan.Strict.Marshal(key)
		if err != nil {
			return nil, nil, fmt.Errorf("extra body: key %q: %w", key, err)
		}
		members = append(append(members, ','), quoted...)
		members = append(append(members, ':'), values[key]...)
	}
	return members, keys, nil
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
