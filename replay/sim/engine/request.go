package engine

import (
	"errors"
	"fmt"
	"time"
)

// Request is a request and, once submitted, its state. Submit it once, and do not
// change its fields afterwards.
type Request struct {
	Prompt *Prompt
	Output int // tokens of the answer (OSL), at least 1
	// Session names the conversation, for routing; "" is none.
	Session string
	// Owner is for the caller's use.
	Owner any

	state     state
	blocks    int // of the prompt with known hashes
	until     int // tokens of the answer that this engine generates
	target    int // tokens to compute before the next one is generated
	computed  int // tokens whose keys and values are in the cache
	scheduled int // tokens that the current step computes
	generated int
	backlog   int // prompt tokens to compute
	cached    int // tokens, at the first admission
	admitted  bool
	preempted int // times
	engine    *Engine

	// The request uses chained cached blocks, up to the run chain, and other blocks,
	// which cannot be found. They have room for so many tokens.
	chain   *run
	chained int
	others  int
	room    int
}

type state uint8

const (
	idle state = iota
	waiting
	running
	phased       // decoding outside the steps
	transferring // its blocks are kept until a decode engine has them
	ended
)

// Cached returns the number of prompt tokens found in the prefix cache when the
// request was first admitted.
func (r *Request) Cached() int { return r.cached }

// Generated returns the number of tokens of the answer so far.
func (r *Request) Generated() int { return r.generated }

// Preempted returns how often the request was preempted.
func (r *Request) Preempted() int { return r.preempted }

// Ended reports whether the request is finished or cancelled.
func (r *Request) Ended() bool { return r.state == ended }

// known returns the number of tokens of the prompt and of the answer so far.
func (r *Request) known() int { return r.Prompt.tokens + r.generated }

// maxTokens returns the number of tokens whose keys and values are computed in the
// end: all but the last of the answer.
func (r *Request) maxTokens() int { return r.Prompt.tokens + r.until - 1 }

// Event is what happened to a request at a time.
type Event struct {
	Request *Request
	Kind    Kind
	At      time.Duration
}

// Kind is the kind of an [Event].
type Kind uint8

// The kinds of events. Finished follows the last token at the same time.
const (
	First     Kind = iota // the first token: the prompt has been computed
	Token                 // a later token
	Finished              // the answer is complete
	Preempted             // removed from the batch, to be computed again

	handover // to a decode engine
)

// String returns the kind in lower case.
func (k Kind) String() string {
	return [...]string{"first", "token", "finished", "preempted", "handover"}[k]
}

// TooLong is the error for a request that can never be served.
type TooLong struct {
	Prompt, Output int    // tokens
	Limit          int    // tokens
	Of             string // what the limit is of
}

func (e *TooLong) Error() string {
	return fmt.Sprintf("a prompt of %d tokens and an answer of %d do not fit into %s of %d tokens", e.Prompt, e.Output, e.Of, e.Limit)
}

// Errors of Submit.
var (
	ErrNoPrompt  = errors.New("the prompt is empty")
	ErrNoOutput  = errors.New("the answer has no token")
	ErrSubmitted = errors.New("the request was submitted before")
	ErrBlockSize = errors.New("the prompt is in blocks of another size than the engine's")
)
