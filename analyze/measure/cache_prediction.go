package measure

import (
	"cmp"

	"moontide/trace"
)

// CachePrediction compares the cached tokens that the server reports for each request with
// those of a simulated cache that starts empty, never evicts, and receives requests in send
// order. Predictions exclude the last token of a prompt, which engines always compute. They
// are in whole blocks of the server or, if its block size is unknown, not rounded. They do
// not use the counts that they are compared with.
type CachePrediction struct {
	// Requests is the number of compared requests: 0 if the server reports no cached
	// tokens or the trace has no block ids.
	Requests int
	// BlockSize is the server's block size, 0 if unknown. MaxBlockSize is its upper
	// bound then: the greatest common divisor of all counts of cached tokens.
	BlockSize, MaxBlockSize int
	// TemplateTokens is the number of tokens that the server counts beyond most prompts: a
	// chat template, which may or may not be cached.
	TemplateTokens int
	Targets        int // number of URLs

	Shared    int // tokens shared with an earlier prompt
	Predicted int // of Shared, those in whole blocks
	// AsText are the Predicted tokens of answers that prompts contain as text. The text may
	// encode to other tokens than were generated, so AsText fewer are still as predicted.
	AsText   int
	Measured int
	Equal    int // requests with the predicted number of cached tokens, or with all shared tokens cached
	// Causes explains tokens that were not cached, and requests with more cached tokens
	// than predicted.
	Causes map[Cause]Difference
	// For live answers, TracePredicted is the prediction with the trace's answers, and
	// FromAnswers the Measured tokens that only real answers allow. If the server's block
	// size is unknown, predictions are in whole blocks of AssumedBlock tokens.
	TracePredicted, FromAnswers trace.Opt[int]
	AssumedBlock                int
	// Each holds the compared requests in send order, if requested in Options.
	Each []PredictedRequest
}

// Difference is the total for the requests with one cause.
type Difference struct {
	Requests int
	Tokens   int
}

// PredictedRequest is one request of a [CachePrediction].
type PredictedRequest struct {
	Row, Target, ISL            int
	Input                       trace.Opt[int] // prompt tokens by the server's count
	Shared, Predicted, Measured int            // tokens
	AsText                      int            // see CachePrediction
	TracePredicted              int            // see CachePrediction
	Cause                       Cause          // "" if as predicted
}

// Cause explains a difference between predicted and cached tokens.
type Cause string

const (
	// NotShared tokens are in no earlier prompt, so no cache has them, as predicted.
	NotShared Cause = "not_shared"
	// Evicted tokens had been computed before the request was sent, but were evicted or
	// are in the cache of another engine.
	Evicted Cause = "evicted"
	// Unknown is any other difference: the tokens were being computed at the time, are
	// less than a block, or the server counted another prompt length.
	Unknown Cause = "unknown"
	// Warm requests have more cached tokens than the requests of this run can explain.
	Warm Cause = "warm"
)

// Causes lists all causes in report order.
var Causes = []Cause{NotShared, Evicted, Unknown, Warm}

// comparison compares the prompts of a cache with the server's counts.
type comparison struct {
	*prefixCache
	CachePrediction
	live bool // prompts contain real answers
}

// compare compares the prompts, which may contain real answers. counts has what the server
// reported.
func (c *prefixCache) compare(counts serverCounts, serverBlock int, live, each bool) CachePrediction {
	p := comparison{prefixCache: c, live: live, CachePrediction: CachePrediction{
		BlockSize: serverBlock, TemplateTokens: counts.template, Targets: len(counts.targets), Causes: map[Cause]Difference{},
	}}
	if serverBlock <= 0 {
		p.MaxBlockSize = max(counts.divisor, 1)
		if live {
			p.AssumedBlock = assumedBlock
		}
	}
	for _, i := range c.play() {
		if q := &c.prompts[i]; q.counted() {
			p.add(q, each)
		}
	}
	return p.CachePrediction
}

func (p *comparison) add(q *cachedPrompt, each bool) {
	measured := max(int(q.Cached), 0) // engines omit a count of 0
	shared := int(q.shared)
	predicted := p.usable(q, shared)
	asText := predicted - p.usable(q, p.beforeText(q))
	cause := p.cause(q, measured, predicted-asText)
	p.Requests++
	p.Shared += shared
	p.Predicted += predicted
	p.AsText += asText
	p.Measured += measured
	p.count(NotShared, int(q.length)-shared)
	countIf(&p.Equal, cause == "")
	p.count(cause, max(measured-predicted, predicted-asText-measured))
	if each {
		p.Each = append(p.Each, PredictedRequest{
			Row: q.Row, Target: q.Target, ISL: int(q.ISL),
			Input:  trace.Opt[int]{Value: int(q.Input), Set: q.Input >= 0},
			Shared: shared, Predicted: predicted, AsText: asText, Measured: measured, Cause: cause,
		})
		q.predicted = int32(len(p.Each))
	}
}

// count counts a request with some tokens, if any.
func (p *comparison) count(cause Cause, tokens int) {
	if tokens > 0 && cause != "" {
		d := p.Causes[cause]
		p.Causes[cause] = Difference{d.Requests + 1, d.Tokens + tokens}
	}
}

// beforeText returns the number of shared tokens before the text of answers.
func (p *comparison) beforeText(q *cachedPrompt) int {
	switch shared := int(q.shared); {
	case q.asText == 0:
		return shared
	case q.base != noBase:
		return min(shared, int(q.baseTokens))
	default:
		return max(shared-q.textSlack(), 0)
	}
}

// cause returns "" if the cached tokens are as predicted. More may be cached:
// answers, part of a chat template, or partial blocks.
func (p *comparison) cause(q *cachedPrompt, measured, predicted int) Cause {
	expectedLength := q.Input < 0 || int(q.Input-q.length) == p.TemplateTokens
	rounded := p.BlockSize == 0 && predicted-measured < p.MaxBlockSize
	known := func(tokens int32) bool { return measured <= int(tokens)+p.slack(q) }
	switch {
	case measured < predicted && (!expectedLength && q.base == noBase || rounded):
		return Unknown
	case measured < min(predicted, p.usable(q, int(q.computed))):
		return Evicted
	case measured < predicted:
		return Unknown
	case known(q.shared):
		return ""
	case q.blind, known(q.concurrent), !expectedLength:
		return Unknown
	}
	return Warm
}

// slack returns how many more tokens than the shared ones may be cached.
func (p *comparison) slack(q *cachedPrompt) int {
	slack := p.TemplateTokens
	if !p.live {
		return slack
	}
	if q.Input >= 0 {
		slack = max(slack, int(q.Input-q.length), q.textSlack())
	}
	if p.BlockSize == 0 {
		slack += p.blockSize - 1
	}
	return slack
}

// usable returns the part of a shared prefix that an engine can reuse.
func (p *comparison) usable(q *cachedPrompt, shared int) int {
	tokens := max(0, min(shared, q.tokens()-1))
	size := max(cmp.Or(p.BlockSize, p.AssumedBlock), 1)
	return tokens / size * size
}

// serverCounts are what the server reported of all prompts.
type serverCounts struct {
	cached   bool         // it reported cached tokens at least once
	divisor  int          // greatest common divisor of the cached tokens
	template int          // see CachePrediction
	targets  map[int]bool // server numbers
}

func (c *collector) serverCounts() serverCounts {
	s, extras := serverCounts{targets: map[int]bool{}}, map[int]int{}
	for q := range c.all {
		if !q.WasSent {
			continue
		}
		s.targets[q.Target] = true
		if q.Counted && q.Cached >= 0 {
			s.cached, s.divisor = true, gcd(s.divisor, int(q.Cached))
		}
		if q.Counted && q.Input >= 0 && !q.estimated && !(q.hasBase && c.opts.TextAnswers) {
			extras[int(q.Input)-c.opts.ownISL(int(q.ISL))]++
		}
	}
	most := 0
	for extra, n := range extras { // the most frequent one, the lowest of several
		if extra >= 0 && (n > most || n == most && extra < s.template) {
			most, s.template = n, extra
		}
	}
	return s
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
