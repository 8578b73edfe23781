package measure

import (
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// chunkCounter measures the token chunks of answers, whose times are not kept.
type chunkCounter struct {
	window    Span
	tokens    tokenRate        // an event is a chunk
	inside    int              // tokens of chunks inside the window
	gaps      stats.Collector  // in milliseconds
	tokenGaps *stats.Collector // gaps per token; nil while they equal gaps
	sizes     map[int]int      // number of chunks by tokens
	notKept   int              // gaps that records do not have
}

// add counts tokens at their arrival: in a window for all requests, otherwise for completed
// ones. Gaps are those of counted requests.
func (c *chunkCounter) add(rec *replay.Record, counted bool) {
	if !isAnswered(rec) {
		return
	}
	if !c.window.whole() || rec.Class == replay.OK {
		tokens, at := tokensOf(rec), rec.First.Value
		c.addChunk(at, tokens.take(1))
		for _, gap := range rec.Gaps {
			at += gap
			c.addChunk(at, tokens.take(1))
		}
		if rest := rec.Chunks - 1; len(rec.Gaps) == 0 && rest > 0 {
			c.spread(rec, rest, &tokens)
		}
	}
	if counted {
		c.addGaps(rec)
	}
}

// spread spreads the chunks after the first evenly, for records without chunk times.
func (c *chunkCounter) spread(rec *replay.Record, chunks int, tokens *chunkTokens) {
	const most = 1 << 12
	steps := min(chunks, most)
	took := float64(rec.Last.Value-rec.First.Value) / float64(steps)
	for i := 1; i <= steps; i++ {
		here := chunks*i/steps - chunks*(i-1)/steps
		c.addChunk(rec.First.Value+time.Duration(took*float64(i)), tokens.take(here))
	}
}

func (c *chunkCounter) addChunk(at time.Duration, tokens int) {
	if c.window.Has(at) {
		c.tokens.add(at, tokens)
		c.inside += tokens
	}
}

// addGaps adds the gaps of a record. As long as every chunk has one token, gaps per token
// are the same.
func (c *chunkCounter) addGaps(rec *replay.Record) {
	if len(rec.Gaps) == 0 {
		c.notKept += max(rec.Chunks-1, 0)
	}
	tokens := tokensOf(rec)
	tokens.countSizes(c.sizes)
	if c.tokenGaps == nil && !tokens.single() {
		c.tokenGaps = c.gaps.Clone()
	}
	if c.tokenGaps != nil {
		eachTokenGap(rec, func(gap time.Duration, tokens int) { c.tokenGaps.AddN(trace.MS(gap), tokens) })
	}
	for _, gap := range rec.Gaps {
		c.gaps.Add(trace.MS(gap))
	}
}

// finish sets what follows from chunks, and from gaps that were only counted.
func (c *chunkCounter) finish(r *Result, counted []runfile.GapCount) {
	r.PeakOutputRate, r.PeakEventRate, r.GapsNotKept = c.tokens.most(ofTokens), c.tokens.most(ofEvents), c.notKept
	sizes := make([]stats.Counted, 0, len(c.sizes))
	for tokens, n := range c.sizes {
		sizes = append(sizes, stats.Counted{Value: float64(tokens), Count: n})
	}
	r.TokensPerChunk = stats.OfCounts(sizes)
	for _, gaps := range counted {
		c.gaps.AddN(trace.MS(time.Duration(gaps.NS)), int(gaps.Count))
		r.GapsCounted += int(gaps.Count)
	}
	r.ITL = c.gaps.Sample()
	switch {
	case c.tokenGaps == nil:
		r.ITLPerToken = r.ITL
	case len(counted) == 0: // counted gaps are not of single tokens
		r.ITLPerToken = c.tokenGaps.Sample()
	}
}

// chunkTokens divides the tokens of an answer among its chunks, in order. Unless the server
// reported them, they are spread evenly, rounded to whole tokens with the same sum.
type chunkTokens struct {
	exact          []int32 // tokens by chunk
	tokens, chunks int
	carry          int // tokens left from earlier chunks, times chunks
}

func tokensOf(rec *replay.Record) chunkTokens {
	tokens, source := rec.OutputTokens()
	c := chunkTokens{tokens: tokens, chunks: max(rec.Chunks, 1)}
	if source == replay.ReportedTokens && len(rec.ChunkTokens) == rec.Chunks && c.plausible(rec.ChunkTokens) {
		c.exact = rec.ChunkTokens
	}
	return c
}

// plausible reports whether every chunk has a token and their sum is that of the answer,
// with exceptions of up to 2 or 1 %. Some servers report the tokens of the whole answer with
// each chunk.
func (c *chunkTokens) plausible(exact []int32) bool {
	const few, share = 2, 100
	sum, none := 0, 0
	for _, k := range exact {
		sum += int(k)
		countIf(&none, k == 0)
	}
	off := max(sum-c.tokens, c.tokens-sum)
	return (off <= few || share*off <= c.tokens) && (none <= few || share*none <= len(exact))
}

// single reports whether every chunk has one token.
func (c *chunkTokens) single() bool { return c.exact == nil && c.tokens == c.chunks }

// take returns the tokens of the next n chunks together.
func (c *chunkTokens) take(n int) (tokens int) {
	switch {
	case c.exact != nil:
		for _, k := range c.exact[:n] {
			tokens += int(k)
		}
		c.exact = c.exact[n:]
	case c.tokens == c.chunks:
		tokens = n
	default:
		c.carry += n * c.tokens
		tokens = c.carry / c.chunks
		c.carry -= tokens * c.chunks
	}
	return tokens
}

// countSizes adds the number of chunks with each number of tokens to sizes.
func (c *chunkTokens) countSizes(sizes map[int]int) {
	if c.exact != nil {
		for _, k := range c.exact {
			sizes[int(k)]++
		}
		return
	}
	fewer, more := c.tokens/c.chunks, c.tokens%c.chunks
	sizes[fewer] += c.chunks - more
	sizes[fewer+1] += more
}

// eachTokenGap yields the gaps per token after the first chunk: the gap before a chunk of k
// tokens is k gaps of a k-th each. A chunk without tokens lengthens the next gap.
func eachTokenGap(rec *replay.Record, yield func(gap time.Duration, tokens int)) {
	tokens, waited := tokensOf(rec), time.Duration(0)
	tokens.take(1)
	for _, gap := range rec.Gaps {
		waited += gap
		if k := tokens.take(1); k > 0 {
			yield(waited/time.Duration(k), k)
			waited = 0
		}
	}
}

// maxTokenGap returns the longest gap per token of a record with gaps, the longest of which
// is given.
func maxTokenGap(rec *replay.Record, longest time.Duration) time.Duration {
	if tokens := tokensOf(rec); tokens.single() {
		return longest
	}
	longest = 0
	eachTokenGap(rec, func(gap time.Duration, _ int) { longest = max(longest, gap) })
	return longest
}

// tokenRate finds the most tokens and events in any second that starts at a multiple
// of a slot, in memory that depends only on the seconds with events.
type tokenRate struct {
	seconds map[time.Duration]*second // with events
	from    time.Duration             // of latest
	latest  *second                   // most recently added to
}

func newTokenRate() tokenRate { return tokenRate{seconds: map[time.Duration]*second{}} }

// second has the tokens and the events of each slot.
type second [2][slots]int64

const (
	slot  = 10 * time.Millisecond
	slots = int(time.Second / slot)

	ofTokens, ofEvents = 0, 1 // indexes of a second
)

// add is fast for successive events in the same second.
func (t *tokenRate) add(at time.Duration, tokens int) {
	at = max(at, 0)
	within := at - t.from
	if t.latest == nil || uint64(within) >= uint64(time.Second) {
		whole := at / time.Second
		t.from, t.latest = whole*time.Second, t.seconds[whole]
		if t.latest == nil {
			t.latest = new(second)
			t.seconds[whole] = t.latest
		}
		within = at - t.from
	}
	i := uint32(within) / uint32(slot)
	t.latest[ofTokens][i] += int64(tokens)
	t.latest[ofEvents][i]++
}

// most slides a window over each second and the previous one.
func (t *tokenRate) most(of int) float64 {
	most := int64(0)
	for at, s := range t.seconds {
		before := t.seconds[at-1]
		if before == nil {
			before = new(second)
		}
		counts, left := &s[of], &before[of]
		sum := int64(0)
		for _, n := range left {
			sum += n
		}
		for i, n := range counts {
			sum += n - left[i]
			most = max(most, sum)
		}
	}
	return float64(most)
}
