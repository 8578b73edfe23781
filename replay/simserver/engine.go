package simserver

import (
	"maps"
	"time"
)

// FinishReason is why an answer ended, as the API spells it.
type FinishReason string

// The reasons: the model had said what it had to say, the answer reached the
// length that was asked for, or the client left before the end.
const (
	FinishStop   FinishReason = "stop"
	FinishLength FinishReason = "length"
	FinishAbort  FinishReason = "abort"
)

// Engine is a model of an LLM serving engine, a state machine without a clock:
// every method takes the time, a duration since whatever the caller calls the
// start, and no call may pass an earlier time than one before it. It is not
// safe for concurrent use.
//
// The model: prefill computes one request at a time, first come first served,
// and only the prompt tokens that the prefix cache does not hold. The first
// token is there when prefill ends, the others follow one a decode step,
// however many requests are decoded together. Generated tokens are not put
// into the prefix cache, and a running request does not keep its blocks from
// being evicted.
type Engine struct {
	cfg         Config
	cache       *prefixCache
	prefillFree time.Duration // when the last prefill submitted so far ends
	active      map[*Timeline]struct{}
	left        Stats // of what has been counted for good
}

// Sampling says how long an answer may be.
type Sampling struct {
	// MaxTokens is the most tokens to generate; less than 1 counts as 1.
	MaxTokens int
	// MinTokens is the least, as far as MaxTokens allows it.
	MinTokens int
	// IgnoreEOS makes the answer exactly MaxTokens long. Otherwise it has the
	// model's natural length where that is shorter: 16 to 512 tokens, a pure
	// function of the prompt.
	IgnoreEOS bool
}

// Timeline is what is going to happen to one request. It is settled when the
// request is submitted and does not change.
type Timeline struct {
	Prompt int // tokens of the prompt
	Cached int // of these, taken from the prefix cache
	Tokens int // tokens of the answer, at least 1
	Finish FinishReason

	Start time.Duration // prefill begins
	First time.Duration // prefill ends and the first token is there
	Step  time.Duration // between any two tokens
}

// Due is when token k of the answer is there, counted from 0.
func (t *Timeline) Due(k int) time.Duration { return t.First + time.Duration(k)*t.Step }

// Out is the number of tokens that are there at the time now.
func (t *Timeline) Out(now time.Duration) int {
	switch {
	case now < t.First:
		return 0
	case t.Step == 0:
		return t.Tokens
	}
	return int(min(int64(t.Tokens), int64((now-t.First)/t.Step)+1))
}

// NewEngine returns an engine at the time 0 with an empty prefix cache. It
// uses the fields of cfg that are about the model.
func NewEngine(cfg Config) *Engine {
	cfg = cfg.withDefaults()
	return &Engine{
		cfg:    cfg,
		cache:  newPrefixCache(cfg.KVBlocks),
		active: make(map[*Timeline]struct{}),
		left:   Stats{Finished: make(map[FinishReason]int)},
	}
}

// NewPrompt returns an empty prompt in blocks of the engine's size. Unlike the
// other methods it may be called at any time from any goroutine.
func (e *Engine) NewPrompt() *Prompt { return newPrompt(e.cfg.BlockSize) }

// Submit hands the engine a request and returns what becomes of it. The
// request stays active until it is passed to Release.
//
// The prefix cache is asked and filled here, although prefill may begin much
// later. That is exact: prefill is first come first served, so by then exactly
// the requests submitted before this one have been computed.
func (e *Engine) Submit(now time.Duration, p *Prompt, s Sampling) *Timeline {
	t := &Timeline{Prompt: p.Len(), Step: e.cfg.DecodeStep}
	t.Tokens, t.Finish = s.length(p.hash())

	// The last token of the prompt is always computed, because the first token
	// of the answer comes from it; and only whole blocks can be reused.
	b := e.cfg.BlockSize
	hit := e.cache.lookup(p.blocks) * b
	t.Cached = max(0, min(hit, t.Prompt-1)) / b * b
	e.cache.use(p.blocks)

	t.Start = max(now, e.prefillFree)
	t.First = t.Start + time.Duration(t.Prompt-t.Cached)*e.cfg.PrefillPerToken
	e.prefillFree = t.First

	e.active[t] = struct{}{}
	e.left.QueriedTokens += t.Prompt
	e.left.HitTokens += t.Cached
	return t
}

// length is the length of the answer to the prompt with the given hash.
func (s Sampling) length(prompt uint64) (int, FinishReason) {
	const shortest, longest = 16, 512
	most := max(s.MaxTokens, 1)
	natural := max(s.MinTokens, shortest+int(prompt%(longest-shortest+1)))
	if s.IgnoreEOS || natural > most {
		return most, FinishLength
	}
	return natural, FinishStop
}

// Release ends a request: it is finished if all its tokens are out at the time
// now, and aborted otherwise. What prefill has been promised to it is spent
// all the same. Releasing a request twice does nothing.
func (e *Engine) Release(now time.Duration, t *Timeline) {
	if _, ok := e.active[t]; !ok {
		return
	}
	delete(e.active, t)
	e.left.add(t, now)
	if t.Out(now) < t.Tokens {
		e.left.Finished[FinishAbort]++
	} else {
		e.left.Finished[t.Finish]++
	}
}

// Stats is the state of an engine at one time. Tokens and finished requests
// are counted since the start.
type Stats struct {
	Waiting int // active requests whose prefill has not begun
	Running int // the other active requests

	CacheUsage    float64 // share of the prefix cache that holds a block, 0..1
	QueriedTokens int     // prompt tokens looked up in the prefix cache
	HitTokens     int     // and taken from it

	PromptTokens    int // of requests whose prefill has ended
	GeneratedTokens int
	Finished        map[FinishReason]int
}

func (s *Stats) add(t *Timeline, now time.Duration) {
	if now >= t.First {
		s.PromptTokens += t.Prompt
	}
	s.GeneratedTokens += t.Out(now)
}

// Stats returns the state at the time now, in time linear in the number of
// active requests.
func (e *Engine) Stats(now time.Duration) Stats {
	s := e.left
	s.Finished = maps.Clone(s.Finished)
	s.CacheUsage = float64(e.cache.len()) / float64(e.cfg.KVBlocks)
	for t := range e.active {
		if now < t.Start {
			s.Waiting++
		} else {
			s.Running++
		}
		s.add(t, now)
	}
	return s
}
