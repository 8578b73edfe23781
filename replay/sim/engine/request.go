package engine

import (
	"errors"
	"fmt"
	"time"
)

// Request is a request and, once it was submitted, its state. Its fields are
// not changed after that, and it is submitted once.
type Request struct {
	Prompt *Prompt
	Output int // tokens of the answer (OSL), at least 1
	// Session names the conversation, for a router; "" is none.
	Session string
	// Owner is the caller's own.
	Owner any

	state     state
	blocks    int // of the prompt, that can be found: looked at with every token
	until     int // tokens of the answer that this engine generates
	target    int // tokens to compute before the next one is generated
	computed  int // tokens whose keys and values are in the cache
	scheduled int // tokens of these that the step under way computes
	generated int
	owed      int // of the engine's backlog
	cached    int // tokens, at the first admission
	admitted  bool
	preempted int // times
	home      *Engine

	// The blocks of the KV cache that the request uses: those up to a run of
	// the cached ones, and others that cannot be found; and the tokens that
	// there is room for in them.
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
	phased  // decoding, out of step
	holding // done here, its blocks kept while they are transferred
	ended
)

// Cached is the number of prompt tokens that were taken from the prefix cache
// when the request was first admitted.
func (r *Request) Cached() int { return r.cached }

// Generated is the number of tokens of the answer that are there.
func (r *Request) Generated() int { return r.generated }

// Preempted is how often the request lost its place.
func (r *Request) Preempted() int { return r.preempted }

// Ended says whether the request is finished or cancelled.
func (r *Request) Ended() bool { return r.state == ended }

// known are the tokens of the prompt and of the answer so far.
func (r *Request) known() int { return r.Prompt.tokens + r.generated }

// most is the number of tokens whose keys and values an engine holds in the
// end: the last token is nobody's past.
func (r *Request) most() int { return r.Prompt.tokens + r.until - 1 }

// Event is something that happened to a request at a time.
type Event struct {
	Request *Request
	Kind    Kind
	At      time.Duration
}

// Kind is what happened.
type Kind uint8

// The kinds of events. The first token of an answer is First and the others
// are Token; the last is followed by Finished at the same time.
const (
	First     Kind = iota // a token: the prompt has been computed
	Token                 // one more token
	Finished              // the answer is complete
	Preempted             // the place was lost; what is computed will be again

	handover // to the decode pool
)

// String is the kind as a log would have it.
func (k Kind) String() string {
	return [...]string{"first", "token", "finished", "preempted", "handover"}[k]
}

// TooLong is a request that can never be answered.
type TooLong struct {
	Prompt, Output int // tokens
	Limit          int // tokens
	Of             string
}

// Error says what does not fit into what.
func (e *TooLong) Error() string {
	return fmt.Sprintf("a prompt of %d tokens and an answer of %d do not fit into %s of %d tokens", e.Prompt, e.Output, e.Of, e.Limit)
}

// What else a request is refused for.
var (
	ErrNoPrompt  = errors.New("the prompt is empty")
	ErrNoOutput  = errors.New("the answer has no token")
	ErrSubmitted = errors.New("the request was submitted before")
	ErrBlockSize = errors.New("the prompt is in blocks of another size than the engine's")
)
