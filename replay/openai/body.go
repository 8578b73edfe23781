package openai

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
	"sync"

	"moontide/replay"
	"moontide/trace"
)

// fillBody spells out what all bodies have in common.
func (c *Client) fillBody() {
	c.before = append(c.before[:0], `{"model":`...)
	model, err := json.Marshal(c.cfg.Model)
	if err != nil {
		panic(err) // New and the list of models let nothing but UTF-8 through
	}
	c.before = append(c.before, model...)
	c.after = append(c.after[:0], `,"stream":true,"stream_options":{"include_usage":true}`...)
	if c.ignore {
		c.after = append(c.after, `,"ignore_eos":true`...)
	}
	c.after = append(c.after, '}')
}

// Prepare spells out a request. A row that brings its own text (messages for
// chat, text_input for completions) is sent as it is; any other gets a prompt
// made from its block ids, of exactly its ISL.
func (c *Client) Prepare(r trace.Request, row int) (replay.Call, error) {
	body := make([]byte, 0, c.bodySize(r.InputLength))
	body = append(body, c.before...)
	start := len(body)
	body, err := c.appendPrompt(body, r, row)
	if err != nil {
		return nil, err
	}
	c.digest.add(row, body[start:])
	body = append(body, `,"max_tokens":`...)
	// An answer of no tokens cannot be asked for.
	body = strconv.AppendInt(body, int64(max(r.OutputLength, 1)), 10)
	body = append(body, c.after...)
	return &call{client: c, body: body, expect: r.OutputLength, timeout: c.cfg.Timeout}, nil
}

func (c *Client) bodySize(isl int) int {
	const perToken = 6 // five digits and a comma, or a word
	return len(c.before) + len(c.after) + 128 + perToken*isl
}

func (c *Client) appendPrompt(dst []byte, r trace.Request, row int) ([]byte, error) {
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
			dst = append(p.AppendWords(append(dst, '"')), '"')
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
	return append(p.AppendWords(append(dst, '"')), '"'), nil
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
