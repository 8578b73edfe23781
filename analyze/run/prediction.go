package run

import (
	"moontide/trace"
)

// Prediction compares, request by request, the prompt tokens that the server
// took from its prefix cache with those that a cache which began empty and never
// evicts would have had, if requests reached it in the order in which they were
// sent. The prediction is in whole blocks of the server, and leaves out the last
// token of a prompt, which engines always compute.
//
// A request that did not get what was predicted has one [Cause]: that of the
// first token that was not there, since what lies behind it cannot be used
// either.
type Prediction struct {
	// Requests are the completed ones that are compared. There are none where
	// the server never said what it had cached, or the trace not what prompts
	// share.
	Requests int
	// BlockSize is the server's: as it said itself or, if Estimated, the
	// greatest common divisor of all counts of cached tokens.
	BlockSize int
	Estimated bool
	// TemplateTokens are what most prompts had more than was sent of their rows,
	// by the server's count: a chat template, which may be cached or not.
	TemplateTokens int
	Targets        int // URLs that requests were sent to

	Shared    int // tokens that an earlier prompt had too
	Predicted int // of these, in whole blocks
	Measured  int
	Equal     int // requests of which as much was cached as predicted, or all that they shared
	Causes    map[Cause]Difference
	// Each is every request that was compared, in order of their rows, if
	// Options asked for it.
	Each []PredictedRequest
}

// Difference is what a cause makes out.
type Difference struct {
	Requests int
	Tokens   int // less, or more, than predicted
}

// PredictedRequest is one request of a [Prediction].
type PredictedRequest struct {
	Row, Target, ISL            int
	Input                       trace.Opt[int] // prompt tokens by the server's count
	Shared, Predicted, Measured int            // tokens
	Cause                       Cause          // "" where they are equal
}

// Cause says why another number of tokens was cached than predicted.
type Cause string

// The causes. Less was cached than predicted:
const (
	// Cold: the prefix had been sent, but of no request that has it had the
	// first token come when this one's own did: it was not computed yet.
	Cold Cause = "cold"
	// Pending: the prefix was computed while this request waited for its first
	// token: too late for it, or it was gone again when its turn came.
	Pending Cause = "pending"
	// Evicted: the prefix had been computed by this server before, and was gone.
	// Behind one URL it may also have been another engine's.
	Evicted Cause = "evicted"
	// Elsewhere: it was another of the URLs that had been sent the prefix.
	Elsewhere Cause = "elsewhere"
	// OtherLength: the server counted another number of prompt tokens than was
	// meant, so the prompt was not what the prediction is of.
	OtherLength Cause = "lengths"
)

// More was cached than predicted:
const (
	// Overtaken: a request that was sent later, but before this one's first
	// token, was computed first.
	Overtaken Cause = "overtaken"
	// Warm: no request of the run can have computed it: the cache was warm
	// before, or the server caches more than prompts.
	Warm Cause = "warm"
	// Unknown: the trace does not say what the prompt shares.
	Unknown Cause = "unknown"
)

// Causes are all causes, in the order in which reports tell them.
var Causes = []Cause{Cold, Pending, Evicted, Elsewhere, OtherLength, Overtaken, Warm, Unknown}

// predict compares all prompts that count.
func (p *prompts) predict(serverBlock int, each bool) Prediction {
	if !p.said || p.blockSize == 0 {
		return Prediction{}
	}
	c := comparison{prompts: p, Prediction: Prediction{BlockSize: serverBlock, Causes: map[Cause]Difference{}}}
	if serverBlock <= 0 {
		c.BlockSize, c.Estimated = max(p.cachedDivisor, 1), true
	}
	c.TemplateTokens, c.Targets = p.template(), len(p.targets)
	p.order()
	if each {
		c.Each = make([]PredictedRequest, 0, len(p.sent))
	}
	for i := range p.sent {
		if q := &p.sent[i]; q.counted {
			c.add(q, each)
		}
	}
	return c.Prediction
}

// comparison is a prediction in the making.
type comparison struct {
	*prompts
	Prediction
}

func (c *comparison) add(q *sentPrompt, each bool) {
	measured := max(int(q.cached), 0) // engines leave a count of 0 out
	shared := c.sharedBefore(q, everywhere)
	predicted := c.whole(q, shared)
	cause := c.cause(q, shared, measured)
	c.Requests++
	c.Shared += shared
	c.Predicted += predicted
	c.Measured += measured
	if cause == "" {
		c.Equal++
	} else {
		d := c.Causes[cause]
		c.Causes[cause] = Difference{d.Requests + 1, d.Tokens + max(measured-predicted, predicted-measured)}
	}
	if each {
		c.Each = append(c.Each, PredictedRequest{
			Row: q.row, Target: c.names[q.target], ISL: int(q.isl),
			Input:  trace.Opt[int]{Value: int(q.input), Set: q.input >= 0},
			Shared: shared, Predicted: predicted, Measured: measured, Cause: cause,
		})
	}
}

// cause says why so many tokens were cached, "" if they were as predicted. They
// may be more by what is cached of a chat template, and with an engine that uses
// all that is shared, whole blocks or not.
func (c *comparison) cause(q *sentPrompt, shared, measured int) Cause {
	predicted := c.whole(q, shared)
	asMeant := q.input < 0 || int(q.input-q.own) == c.TemplateTokens
	switch {
	case measured < predicted && !asMeant:
		return OtherLength
	case measured < c.whole(q, c.computedBefore(q)): // was sent before, too
		return Evicted
	case measured < predicted && measured < c.whole(q, c.computedMeanwhile(q)):
		return Pending
	case measured < c.whole(q, c.sharedBefore(q, q.target)):
		return Cold
	case measured < predicted:
		return Elsewhere
	case measured <= shared+c.TemplateTokens:
		return ""
	case q.blind:
		return Unknown
	case measured <= c.sharedMeanwhile(q)+c.TemplateTokens:
		return Overtaken
	case !asMeant:
		return OtherLength
	}
	return Warm
}

// whole is how much of a shared prefix an engine can use: whole blocks, and all
// but the last token of the prompt.
func (c *comparison) whole(q *sentPrompt, shared int) int {
	length := int(q.own)
	if q.input >= 0 {
		length = int(q.input)
	}
	return max(0, min(shared, length-1)) / c.BlockSize * c.BlockSize
}
