package run

import (
	"cmp"

	"moontide/trace"
)

// CachePrediction compares the cached tokens that the server reports for each
// request with those of a simulated cache that starts empty, never evicts, and
// receives requests in send order. Predictions exclude the last token of a prompt,
// which engines always compute. They are in whole blocks of the server or, if its
// block size is unknown, not rounded: nothing in them comes from the counts that they
// are compared with. The [Cause] of a difference is that of the first missing token.
type CachePrediction struct {
	// Requests is the number of compared requests: 0 if the server reports no cached
	// tokens or the trace has no block ids.
	Requests int
	// BlockSize is the server's block size, 0 if unknown. MaxBlockSize is its upper
	// bound then: the greatest common divisor of all counts of cached tokens.
	BlockSize, MaxBlockSize int
	// TemplateTokens is the number of tokens by which the server's count exceeds
	// most prompts: a chat template, which may or may not be cached.
	TemplateTokens int
	Targets        int // number of URLs that requests were sent to

	Shared    int // tokens shared with an earlier prompt
	Predicted int // of Shared, those in whole blocks
	Measured  int
	Equal     int // requests with the predicted number of cached tokens, or with all shared tokens cached
	Causes    map[Cause]Difference
	// Of prompts with live answers: TracePredicted is the prediction for the same
	// requests with the trace's answers, and FromAnswers the number of Measured tokens
	// that would have been computed again. Predictions are in whole blocks of
	// AssumedBlock tokens if the server's size is unknown.
	TracePredicted, FromAnswers trace.Opt[int]
	AssumedBlock                int
	// Each holds the compared requests in send order, if requested in Options.
	Each []PredictedRequest
}

// Difference is the total for the requests with one cause.
type Difference struct {
	Requests int
	Tokens   int // below or above the prediction
}

// PredictedRequest is one request of a [CachePrediction].
type PredictedRequest struct {
	Row, Target, ISL            int
	Input                       trace.Opt[int] // prompt tokens by the server's count
	Shared, Predicted, Measured int            // tokens
	TracePredicted              int            // see CachePrediction
	Cause                       Cause          // "" if as predicted
}

// Cause is why the number of cached tokens differs from the prediction.
type Cause string

// Causes if fewer tokens were cached than predicted:
const (
	// Cold: the prefix had been sent but not computed yet.
	Cold Cause = "cold"
	// Pending: the prefix was computed while this request waited for its first
	// token, but too late, or it was evicted again.
	Pending Cause = "pending"
	// Evicted: this server had computed the prefix. If the URL serves several
	// engines, another one may have.
	Evicted Cause = "evicted"
	// Elsewhere: the prefix had only been sent to another URL.
	Elsewhere Cause = "elsewhere"
	// Rounding: less than a block is missing, whose size is unknown.
	Rounding Cause = "rounding"
	// OtherLength: the server counted another number of prompt tokens than expected.
	OtherLength Cause = "lengths"
	// ReEncoded: the text of a live answer, or the one before it, is other tokens in
	// the next prompt.
	ReEncoded Cause = "re-encoded"
)

// Causes if more tokens were cached than predicted:
const (
	// Overtaken: a request that was sent later was computed first.
	Overtaken Cause = "overtaken"
	// Warm: no request of the run can have computed it.
	Warm Cause = "warm"
	// Unknown: the trace has no block ids for the prompt.
	Unknown Cause = "unknown"
)

// Causes lists all causes in report order.
var Causes = []Cause{Cold, Pending, Evicted, Elsewhere, Rounding, OtherLength, ReEncoded, Overtaken, Warm, Unknown}

func (h *promptHistory) predict(serverBlock int, each bool) CachePrediction {
	if !h.hasCached || h.blockSize == 0 {
		return CachePrediction{}
	}
	p := predictor{promptHistory: h, CachePrediction: CachePrediction{BlockSize: serverBlock, Causes: map[Cause]Difference{}}}
	if serverBlock <= 0 {
		p.MaxBlockSize = max(h.cachedDivisor, 1)
		if h.continued != nil {
			p.AssumedBlock = assumedBlock
		}
	}
	p.TemplateTokens, p.Targets = h.template(), len(h.targets)
	h.order()
	if each {
		p.Each = make([]PredictedRequest, 0, len(h.prompts))
	}
	for i := range h.prompts {
		if q := &h.prompts[i]; q.counted {
			p.compare(q, each)
		}
	}
	return p.CachePrediction
}

type predictor struct {
	*promptHistory
	CachePrediction
}

func (p *predictor) compare(q *prompt, each bool) {
	measured := max(int(q.cached), 0) // engines omit a count of 0
	shared := p.sharedBefore(q, allServers)
	predicted := p.usable(q, shared)
	cause := p.cause(q, shared, measured)
	p.Requests++
	p.Shared += shared
	p.Predicted += predicted
	p.Measured += measured
	if cause == "" {
		p.Equal++
	} else {
		d := p.Causes[cause]
		p.Causes[cause] = Difference{d.Requests + 1, d.Tokens + max(measured-predicted, predicted-measured)}
	}
	if each {
		p.Each = append(p.Each, PredictedRequest{
			Row: q.row, Target: p.names[q.target], ISL: int(q.isl),
			Input:  trace.Opt[int]{Value: int(q.input), Set: q.input >= 0},
			Shared: shared, Predicted: predicted, Measured: measured, Cause: cause,
		})
	}
}

// cause returns "" if the cached tokens are as predicted. More may be cached: part
// of a chat template, or partial blocks.
func (p *predictor) cause(q *prompt, shared, measured int) Cause {
	predicted := p.usable(q, shared)
	expectedLength := q.input < 0 || int(q.input-q.own) == p.TemplateTokens
	switch {
	case measured < predicted && !expectedLength && !p.continues(q):
		return OtherLength
	case p.BlockSize == 0 && measured < predicted && predicted-measured < p.MaxBlockSize && !p.continued[q.row].reencoded:
		return Rounding
	case measured < predicted && p.reencoded(q, measured):
		return ReEncoded
	case measured < p.usable(q, p.computedBy(q, q.firstBySent)):
		return Evicted
	case measured < predicted && measured < p.usable(q, p.computedBy(q, q.firstAt)):
		return Pending
	case measured < p.usable(q, p.sharedBefore(q, q.target)):
		return Cold
	case measured < predicted:
		return Elsewhere
	case measured <= shared+p.slack(q):
		return ""
	case q.blind:
		return Unknown
	case measured <= p.sharedMeanwhile(q)+p.slack(q):
		return Overtaken
	case !expectedLength:
		return OtherLength
	}
	return Warm
}

// usable returns the part of a shared prefix that an engine can reuse.
func (p *predictor) usable(q *prompt, shared int) int {
	length := int(q.own)
	if q.input >= 0 {
		length = int(q.input)
	}
	tokens := max(0, min(shared, length-1))
	size := max(cmp.Or(p.BlockSize, p.AssumedBlock), 1)
	return tokens / size * size
}
