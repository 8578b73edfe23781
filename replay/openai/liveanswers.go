package openai

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"moontide/replay"
	"moontide/replay/prompt"
	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Values of Config.Answers.
const (
	AnswersFromTrace = "trace" // prompts consist of block ids alone
	LiveAnswers      = "live"  // prompts hold what the server answered to earlier turns
)

// AnswerModes returns all values of Config.Answers.
func AnswerModes() []string { return []string{AnswersFromTrace, LiveAnswers} }

// maxKeptAnswers limits the answers that turns in progress continue, in bytes.
const maxKeptAnswers = 1 << 30

// AnswerCounts counts the turns of a run with live answers.
type AnswerCounts struct {
	Continued int // turns whose prompts continue an earlier one
	Unchanged int // later turns sent as in the trace because their own text does not continue that of an earlier one
	Forgotten int // answers that were not kept because those of other turns in progress took too much memory
}

// AnswerCounts returns the counts of turns so far. They are 0 unless answers are live.
func (c *Client) AnswerCounts() AnswerCounts {
	if c.live == nil {
		return AnswerCounts{}
	}
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	return c.live.counts
}

// live is the state of a run with live answers.
type live struct {
	book *transcript.Book[reply]
	more trace.Opt[int] // tokens that the template adds for an answer and the message after it

	mu      sync.Mutex
	counts  AnswerCounts
	refused map[int]int // refusals of rows that may be sent again
}

type entry = transcript.Entry[reply]

// reply is an answer, and what has to be known of its prompt.
type reply struct {
	ids    []uint32 // for prompts of token ids; else:
	text   []byte   // escaped for JSON
	tokens int      // of either
	err    error    // why it cannot be part of a prompt

	sent sentPrompt
}

// sentPrompt describes a prompt that was sent.
type sentPrompt struct {
	length int    // tokens, with those of the template, as the server counts them
	extra  int    // tokens after its last answer that the trace's prompt does not have
	own    uint64 // hash of the row's own messages
	ownLen int    // number of the row's own messages
	text   bool   // the row has text of its own
}

func newLive(cfg Config) *live {
	if cfg.Answers != LiveAnswers {
		return nil
	}
	size := cmp.Or(cfg.Source.BlockSize, prompt.DefaultBlockSize)
	return &live{book: transcript.NewBook[reply](cfg.Graph, size, maxKeptAnswers), refused: map[int]int{}}
}

// continued is the state of a request with live answers that waits for others, or that
// others wait for.
type continued struct {
	row       int
	kept      *kept // nil if no row waits for it
	sent      sentPrompt
	base      replay.Base
	unchanged bool // see AnswerCounts
}

// open returns the entry and the state of a row, nil if it needs neither.
func (c *Client) open(r trace.Request, row int) (*entry, *continued) {
	waiting := c.cfg.Graph.Waiting(row)
	if c.live == nil || len(c.cfg.Graph.Before(row)) == 0 && waiting == 0 {
		return nil, nil
	}
	t := &continued{row: row}
	if waiting > 0 {
		t.kept = &kept{wantIDs: c.cfg.Prompt == Tokens}
	}
	return c.live.book.Open(r, row), t
}

// answered keeps the answer to a turn, or forgets the turn if it failed, unless it was
// refused and may be sent again.
func (c *Client) answered(t *continued, o *replay.Outcome) {
	if t == nil {
		return
	}
	o.Base = t.base
	l := c.live
	refused := o.Class == replay.HTTPError && (o.Status == 429 || o.Status == 503)
	l.mu.Lock()
	defer l.mu.Unlock()
	if refused && l.refused[t.row] < c.cfg.Retries {
		l.refused[t.row]++
		return
	}
	delete(l.refused, t.row)
	if o.Class != replay.OK {
		l.book.Drop(t.row)
		return
	}
	switch {
	case t.unchanged:
		l.counts.Unchanged++
	case t.base.Row.Set:
		l.counts.Continued++
	}
	a, g := reply{sent: t.sent}, transcript.Generated{}
	if t.kept != nil {
		a, g = c.replyOf(t.kept, o.Counts)
		a.sent = t.sent
		if c.template.Set && c.cfg.Prompt != Tokens && o.Counts.Input.Set {
			a.sent.length = o.Counts.Input.Value
		}
	}
	var tooMany *transcript.TooManyError
	if errors.As(l.book.End(t.row, g, a, a.size()), &tooMany) {
		l.counts.Forgotten++
	}
}

// Forget implements replay.Forgetter.
func (c *Client) Forget(row int) {
	if c.live != nil {
		c.live.book.Drop(row)
	}
}

func (a *reply) size() int64 {
	return int64(4*cap(a.ids) + cap(a.text))
}

// replyOf returns what a prompt can hold of an answer.
func (c *Client) replyOf(k *kept, counts replay.Counts) (a reply, g transcript.Generated) {
	switch {
	case k.err != nil:
		a.err = k.err
	case k.wantIDs:
		a, g = k.tokenIDs(counts)
	default:
		a, g = k.textReply(counts)
	}
	if a.err != nil { // its tokens still take up their places
		return reply{err: a.err}, transcript.Generated{Tokens: max(counts.Output.Value, 1)}
	}
	a.tokens = g.Tokens
	return a, g
}

func (k *kept) tokenIDs(counts replay.Counts) (a reply, g transcript.Generated) {
	n := len(k.ids)
	a.ids = slices.Clip(k.ids)
	g.Dropped = min(counts.Reasoning.Value, n)
	g.Tokens = n - g.Dropped
	if counts.Output.Set && counts.Output.Value != n || n == 0 {
		a.err = fmt.Errorf("the server sent %d token ids for an answer of %d tokens", n, counts.Output.Value)
	}
	return a, g
}

// textReply makes a reply of text, with the server's token count. If the server does not
// count reasoning tokens separately, all pieces are assumed to have the same number of
// tokens.
func (k *kept) textReply(counts replay.Counts) (a reply, g transcript.Generated) {
	if !counts.Output.Set {
		a.err = errors.New("the server does not report the number of output tokens")
		return a, g
	}
	a.text, _, a.err = checked(k.text)
	total := counts.Output.Value
	switch {
	case len(k.reasoning) == 0:
	case counts.Reasoning.Set:
		g.Dropped = min(counts.Reasoning.Value, total)
	default:
		g.Dropped = total * k.reasoningPieces / (k.reasoningPieces + k.textPieces)
	}
	g.Tokens = total - g.Dropped
	return a, g
}

// checked returns text that is escaped for JSON, and the text unescaped. Unpaired
// surrogates, which no server accepts, are replaced.
func checked(text []byte) (escaped []byte, said string, err error) {
	if err := jsonscan.Strict.UnmarshalFromString(`"`+string(text)+`"`, &said); err != nil {
		return nil, "", errors.New("the text of the answer is not valid JSON")
	}
	if !strings.ContainsRune(said, utf8.RuneError) {
		return slices.Clip(text), said, nil
	}
	again := jsonscan.AppendString(nil, said)
	return again[1 : len(again)-1], said, nil
}
