package openai

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"sync"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

// fillBody spells out what all bodies have in common.
func (c *Client) fillBody() {
	c.before = append(c.before[:0], `{"model":`...)
	model, err := jsonscan.Strict.Marshal(c.cfg.Model)
	if err != nil {
		panic(err) // New and the list of models let nothing but UTF-8 through
	}
	c.before = append(c.before, model...)
	c.after = append(c.after[:0], `,"stream":true,"stream_options":{"include_usage":true}`...)
	if c.ignoreEOS && !slices.Contains(c.extraKeys, "ignore_eos") {
		c.after = append(c.after, `,"ignore_eos":true`...)
	}
	c.after = append(append(c.after, c.extra...), '}')
}

// ownMembers are those that ExtraBody cannot set.
var ownMembers = []string{"model", "prompt", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n"}

// extraMembers returns the members of a JSON object and those of the sampling,
// each behind a comma, in the order of their keys.
func extraMembers(object string, sampling map[string]part) (members []byte, keys []string, err error) {
	values := map[string]part{}
	if object != "" {
		if err := jsonscan.Strict.UnmarshalFromString(object, &values); err != nil || values == nil {
			return nil, nil, errors.New("extra body is not a JSON object")
		}
	}
	for key, value := range sampling {
		if _, twice := values[key]; twice {
			return nil, nil, fmt.Errorf("extra body has %q, which is given by itself, too", key)
		}
		values[key] = value
	}
	keys = slices.Sorted(maps.Keys(values))
	for _, key := range keys {
		if slices.Contains(ownMembers, key) {
			return nil, nil, fmt.Errorf("extra body has %q, which is the replay's to set", key)
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

// sampling are the members that say how tokens are chosen.
func (cfg Config) sampling() map[string]part {
	members := map[string]part{}
	for key, value := range map[string]trace.Opt[float64]{"temperature": cfg.Temperature, "top_p": cfg.TopP} {
		if value.Set {
			members[key] = strconv.AppendFloat(nil, value.Value, 'g', -1, 64)
		}
	}
	return members
}

// Prepare spells out a request. A row that brings its own text (messages for
// chat, text_input for completions) is sent as it is; any other gets a prompt
// made from its block ids, of exactly its ISL.
func (c *Client) Prepare(r trace.Request, row int) (replay.Call, error) {
	return orError(c.prepare(r, row, c.digest.add))
}

// prepare spells out a request and shows its prompt to told.
func (c *Client) prepare(r trace.Request, row int, told func(row int, prompt []byte)) (*call, error) {
	body := make([]byte, 0, c.bodySize(r.InputLength))
	body = append(body, c.before...)
	start := len(body)
	body, err := c.appendPrompt(body, r, row)
	if err != nil {
		return nil, err
	}
	told(row, body[start:])
	body = c.appendRest(body, r.OutputLength)
	call := c.newCall(c.server(r, row), r.SessionID, body)
	if onToken := c.cfg.OnToken; onToken != nil {
		call.onToken = func(data []byte) { onToken(row, data) }
	}
	return call, nil
}

// appendRest appends what stands behind the prompt of a request for an answer
// of so many tokens. One of no tokens cannot be asked for.
func (c *Client) appendRest(body []byte, osl int) []byte {
	osl = max(osl, 1)
	body = strconv.AppendInt(append(body, `,"max_tokens":`...), int64(osl), 10)
	if c.minTokens && !slices.Contains(c.extraKeys, "min_tokens") {
		body = strconv.AppendInt(append(body, `,"min_tokens":`...), int64(osl), 10)
	}
	return append(body, c.after...)
}

func (c *Client) bodySize(isl int) int {
	const perToken = 6 // five digits and a comma, or a word
	return len(c.before) + len(c.after) + 128 + perToken*isl
}

func (c *Client) appendPrompt(dst []byte, r trace.Request, row int) ([]byte, error) {
	r.InputLength = c.exactLength(r.InputLength)
	p := c.cfg.Source.Prompt(r, row)
	if c.cfg.Endpoint == Chat {
		dst = append(dst, `,"messages":`...)
		if raw, ok := r.Raw("messages"); ok {
			return append(dst, raw...), nil
		}
		dst = append(dst, `[{"role":"user","content":`...)
		if raw, ok := text(r); ok {
			dst = append(dst, raw...)
		} else {
			dst = append(p.AppendText(append(dst, '"')), '"')
		}
		return append(dst, "}]"...), nil
	}
	if err := Accepts(c.cfg.Endpoint, r); err != nil {
		return nil, err
	}
	dst = append(dst, `,"prompt":`...)
	if raw, ok := text(r); ok {
		return append(dst, raw...), nil
	}
	if c.cfg.Prompt == Tokens {
		return p.AppendJSONTokens(dst), nil
	}
	return append(p.AppendText(append(dst, '"')), '"'), nil
}

// Accepts returns why a row cannot be sent to an endpoint, if it cannot.
func Accepts(endpoint string, r trace.Request) error {
	if _, isText := text(r); endpoint == Chat || isText {
		return nil
	}
	if _, isChat := r.Raw("messages"); isChat {
		return fmt.Errorf("the row has messages: they need the chat endpoint")
	}
	return nil
}

// text returns the prompt that a row brings along, as the JSON string it is.
func text(r trace.Request) (raw string, ok bool) {
	if _, ok := r.Text("text_input"); !ok {
		return "", false
	}
	return r.Raw("text_input")
}

// digest sums the SHA-256 of all prompts, each with its row, modulo 2^256: it
// depends on what was sent, not on the order in which it was prepared, and
// takes no memory for a request.
type digest struct {
	mu  sync.Mutex
	sum [4]uint64
}

func (d *digest) add(row int, prompt []byte) {
	h := sha256.New()
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(row))
	h.Write(number[:])
	h.Write(prompt)
	sum := h.Sum(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sum = addModulo(d.sum, sum)
}

// PromptDigest is the sum over all requests prepared so far of
// SHA-256(row, prompt) modulo 2^256, in hexadecimal: the row as 8 bytes,
// big-endian, the prompt as the member of the body that it is, from the comma
// before its key. Equal digests are equal prompts.
func (c *Client) PromptDigest() string {
	c.digest.mu.Lock()
	defer c.digest.mu.Unlock()
	var b [32]byte
	for i, word := range c.digest.sum {
		binary.BigEndian.PutUint64(b[8*i:], word)
	}
	return hex.EncodeToString(b[:])
}

// addModulo adds a big-endian 256-bit number.
func addModulo(sum [4]uint64, number []byte) [4]uint64 {
	var carry uint64
	for i := 3; i >= 0; i-- {
		sum[i], carry = bits.Add64(sum[i], binary.BigEndian.Uint64(number[8*i:]), carry)
	}
	return sum
}
