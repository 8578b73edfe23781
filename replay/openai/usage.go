package openai

import (
	"moontide/replay"
	"moontide/trace"
)

// usage is the object of that name as a decoder reads it.
type usage struct {
	PromptTokens     *int `json:"prompt_tokens"`
	CompletionTokens *int `json:"completion_tokens"`
	Details          *struct {
		CachedTokens *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHitTokens *int `json:"prompt_cache_hit_tokens"` // DeepSeek
	CachedTokens   *int `json:"cached_tokens"`           // Moonshot, older SGLang
}

// tally is what one event says of counts, by the members that say it.
type tally struct {
	input, output trace.Opt[int]
	// Of what was cached, each believed before the one in front of it.
	timed, cached, hit, detailed trace.Opt[int]
}

func (u *usage) tally() (t tally) {
	set(&t.input, u.PromptTokens)
	set(&t.output, u.CompletionTokens)
	set(&t.cached, u.CachedTokens)
	set(&t.hit, u.CacheHitTokens)
	if u.Details != nil {
		set(&t.detailed, u.Details.CachedTokens)
	}
	return t
}

// over is counts with what the tally says in place of what earlier events said:
// some servers send usage with every chunk, and the last is the whole.
func (t tally) over(counts replay.Counts) replay.Counts {
	put(&counts.Input, t.input)
	put(&counts.Output, t.output)
	put(&counts.Cached, t.timed)
	put(&counts.Cached, t.cached)
	put(&counts.Cached, t.hit)
	put(&counts.Cached, t.detailed)
	return counts
}

func set(o *trace.Opt[int], n *int) {
	if n != nil && *n >= 0 {
		*o = trace.Some(*n)
	}
}

func put(o *trace.Opt[int], n trace.Opt[int]) {
	if n.Set {
		*o = n
	}
}

// usage looks at the usage of an event, or null. Servers send it with every
// event where they are asked for continuous usage.
func (s *scanner) usage(t *tally) {
	if s.peek() == 'n' {
		s.null()
		return
	}
	var input, output, cached, hit, detailed bool
	for more := s.open('{', '}'); more; more = s.more('}') {
		switch string(s.key()) {
		case "prompt_tokens":
			s.once(&input)
			s.count(&t.input)
		case "completion_tokens":
			s.once(&output)
			s.count(&t.output)
		case "cached_tokens":
			s.once(&cached)
			s.count(&t.cached)
		case "prompt_cache_hit_tokens":
			s.once(&hit)
			s.count(&t.hit)
		case "prompt_tokens_details":
			s.once(&detailed)
			s.details(t)
		default:
			s.value(0)
		}
	}
}

// details looks at what usage says of the prompt, or null.
func (s *scanner) details(t *tally) {
	if s.peek() == 'n' {
		s.null()
		return
	}
	cached := false
	for more := s.open('{', '}'); more; more = s.more('}') {
		switch string(s.key()) {
		case "cached_tokens":
			s.once(&cached)
			s.count(&t.detailed)
		default:
			s.value(0)
		}
	}
}

// mostDigits is how many digits surely fit into an int.
const mostDigits = 9

// count reads a count of tokens, or null. It fails for all but plain digits.
func (s *scanner) count(n *trace.Opt[int]) {
	if s.peek() == 'n' {
		s.null()
		return
	}
	start, value := s.at, 0
	for ; s.at < len(s.b) && '0' <= s.b[s.at] && s.b[s.at] <= '9' && s.at-start <= mostDigits; s.at++ {
		value = 10*value + int(s.b[s.at]-'0')
	}
	switch digits := s.at - start; {
	case digits == 0, digits > mostDigits, digits > 1 && s.b[start] == '0':
		s.fail() // as does what follows digits in a fraction or an exponent
	default:
		*n = trace.Some(value)
	}
}
