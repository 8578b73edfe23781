package engine

import (
	"errors"
	"fmt"
	"time"
)

// Request is a request and, after Submit, its state. Submit it only once, and
// do not change its fields afterwards.
type Request struct {
	Prompt *Prompt
	Output int // tokens of the answer (OSL), at least 1
	// Session identifies the conversation, for routing; "" is none.
	Session string
	// Owner is reserved for the caller.
	Owner any

	state     state
	blocks    int // number of prompt blocks with known hashes
	until     int // tokens of the answer that this engine generates
	target    int // tokens to compute before generating the next one
	computed  int // tokens whose keys and values are cached
	scheduled int // tokens computed by the current step
	generated int
	backlog   int // prompt tokens left to compute
	cached    int // cached tokens at the first admission
	admitted  bool
	reached   time.Duration // the engine that has it
	arrived   time.Duration // at its first engine
	preempted int           // number of preemptions
	rank      *rank

	// The request uses chained cached blocks, up to the run chain, and other
	// blocks, which cannot be looked up. Together they have room for this many
	// tokens.
	chain   *run
	chained int
	others  int
	room    int
}

type state uint8

const (
	idle     state = iota
	arriving       // has not reached the router
	waiting
	running
	phased       // decodes outside the steps
	transferring // keeps its blocks until a decode engine has them
	ended
)

// Cached returns the number of prompt tokens found in the prefix cache when the
// request was first admitted.
func (r *Request) Cached() int { return r.cached }

// Generated returns the number of answer tokens so far.
func (r *Request) Generated() int { return r.generated }

// Preempted returns the number of times the request was preempted.
func (r *Request) Preempted() int { return r.preempted }

// Ended reports whether the request is finished or cancelled.
func (r *Request) Ended() bool { return r.state == ended }

// known returns the number of prompt tokens and generated tokens.
func (r *Request) known() int { return r.Prompt.tokens + r.generated }

// maxTokens returns the number of tokens whose keys and values are eventually
// computed: all but the last of the answer.
func (r *Request) maxTokens() int { return r.Prompt.tokens + r.until - 1 }

// Event is an event of a request at a given time.
type Event struct {
	Request *Request
	Kind    Kind
	At      time.Duration
}

// Kind is the kind of an [Event].
type Kind uint8

// The kinds of events. Finished follows the last token, at the same time.
const (
	First     Kind = iota // the first token; the prompt has been computed
	Token                 // a later token
	Finished              // the answer is complete
	Preempted             // removed from the batch, to be recomputed later

	handover // to a decode engine
)

// String returns the kind in lower case.
func (k Kind) String() string {
	return [...]string{"first", "token", "finished", "preempted", "handover"}[k]
}

// TooLong is the error for a request that exceeds a limit and can never be
// served.
type TooLong struct {
	Prompt, Output int    // tokens
	Limit          int    // tokens
	Of             string // name of the limit
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
