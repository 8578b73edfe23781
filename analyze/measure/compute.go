package measure

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Compute computes the metrics of a run from its records, in any order. Errors from
// records are returned unchanged.
func Compute(records iter.Seq2[replay.Record, error], opts Options) (*Result, error) {
	c := newCollector(opts)
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		c.add(&rec)
	}
	return c.finish(), nil
}

type collector struct {
	tally
	inFlight     spans
	tokens       tokenRate // an event is a chunk
	sent         tokenRate // an event is a request
	tokensInside int       // tokens of chunks inside the window
	prompts      promptHistory
	predicted    func(row int) *PredictedRequest // by the end
	gaps         stats.Collector                 // in milliseconds
	tokenGaps    *stats.Collector                // gaps per token; nil while they equal gaps
	chunkSizes   map[int]int                     // number of chunks by tokens
	cached       int
	reasoning    reasoningTokens

	requests        []Request // of sessions or, for Detail, all
	links           []sessionLinks
	graph           *trace.Graph // of requests, by index
	sessionRequests int
	live            bool // prompts contain real answers
}

// newCollector preallocates memory: growing slices would double the garbage.
func newCollector(opts Options) *collector {
	expected := max(opts.Expected, 0)
	c := &collector{
		tally: newTally(opts, allLatencies), live: opts.LiveAnswers,
		chunkSizes: map[int]int{},
		tokens:     newTokenRate(),
		sent:       newTokenRate(),
		inFlight:   spans{make([]time.Duration, 0, expected), make([]time.Duration, 0, expected)},
		prompts:    promptHistory{blockSize: opts.BlockSize, textAnswers: opts.TextAnswers, prompts: make([]prompt, 0, expected), targets: map[int]bool{}, extras: map[int]int{}},
	}
	if opts.Detail {
		c.requests = make([]Request, 0, expected)
	}
	return c
}

func (c *collector) add(rec *replay.Record) {
	r, window := c.result, c.opts.Window
	completed := rec.Class == replay.OK && window.Holds(rec)
	if completed {
		c.addReasoning(rec)
	}
	timing := TimingOf(rec)
	c.tally.add(rec, &timing)
	if rec.Sent.Set {
		if from, to, some := window.clip(rec.Sent.Value, rec.Done); some {
			c.inFlight.add(from, to)
		}
		if window.Has(rec.Sent.Value) {
			c.sent.add(rec.Sent.Value, 0)
		}
		c.prompts.add(rec, c.opts.ownISL(rec.InputLength), completed)
	}
	c.addChunks(rec)
	if r.Goodput != nil && window.Has(rec.Done) {
		r.Goodput.add(rec)
	}
	if c.opts.Detail || inSession(rec) || rec.Model != "" {
		c.addRequest(rec, timing, completed)
	}
	if !completed {
		return
	}
	if n := rec.Counts.Cached; n.Set {
		c.cached += n.Value
		r.Cache.Requests++
	}
	if timing.Answered {
		c.addGaps(rec)
	}
}

// addChunks counts tokens at their arrival: in a window for all requests, otherwise
// for completed ones.
func (c *collector) addChunks(rec *replay.Record) {
	window := c.opts.Window
	if !isAnswered(rec) || window.whole() && rec.Class != replay.OK {
		return
	}
	tokens, at := tokensOf(rec), rec.First.Value
	c.addChunk(at, tokens.take(1))
	for _, gap := range rec.Gaps {
		at += gap
		c.addChunk(at, tokens.take(1))
	}
	if rest := rec.Chunks - 1; len(rec.Gaps) == 0 && rest > 0 {
		c.spreadChunks(rec, rest, &tokens)
	}
}

// spreadChunks spreads the chunks after the first evenly, for records without chunk
// times.
func (c *collector) spreadChunks(rec *replay.Record, chunks int, tokens *chunkTokens) {
	const most = 1 << 12
	places := min(chunks, most)
	took := float64(rec.Last.Value-rec.First.Value) / float64(places)
	for i := 1; i <= places; i++ {
		here := chunks*i/places - chunks*(i-1)/places
		c.addChunk(rec.First.Value+time.Duration(took*float64(i)), tokens.take(here))
	}
}

func (c *collector) addChunk(at time.Duration, tokens int) {
	if c.opts.Window.Has(at) {
		c.tokens.add(at, tokens)
		c.tokensInside += tokens
	}
}

func (c *collector) addGaps(rec *replay.Record) {
	if len(rec.Gaps) == 0 {
		c.result.GapsNotKept += max(rec.Chunks-1, 0)
	}
	c.addTokenGaps(rec)
	for _, gap := range rec.Gaps {
		c.gaps.Add(trace.MS(gap))
	}
}

// addTokenGaps adds the gaps per token, before addGaps adds the gaps. As long as
// every chunk has one token, they are the same.
func (c *collector) addTokenGaps(rec *replay.Record) {
	tokens := tokensOf(rec)
	tokens.countSizes(c.chunkSizes)
	if c.tokenGaps == nil && !tokens.single() {
		c.tokenGaps = c.gaps.Clone()
	}
	if c.tokenGaps != nil {
		eachTokenGap(rec, func(gap time.Duration, tokens int) { c.tokenGaps.AddN(trace.MS(gap), tokens) })
	}
}

func (c *collector) finish() *Result {
	r := c.result
	var predicting sync.WaitGroup // in parallel: it takes as long as the rest
	c.sortRequests()
	each := c.opts.EachPrediction || c.opts.Detail
	predicting.Go(func() {
		live := c.newLiveHistory(cmp.Or(c.opts.ServerBlockSize, c.opts.Samples.Server.BlockSize))
		r.Turns = live.turns
		live.compareLengths(&r.Lengths)
		r.Cache.Prediction = live.predict(each || c.sessionRequests > 0)
		r.Cache.MaxHits = live.maxHits()
	})
	c.tally.finish()
	c.setDistributions()
	c.setRates()
	if r.Cache.Requests > 0 {
		r.Cached = trace.Some(c.cached)
	}
	r.Reasoning = c.reasoning.mean()
	predicting.Wait()
	c.prompts = promptHistory{} // free the memory
	c.predicted = predictionsByRow(r.Cache.Prediction.Each)
	r.Sessions, r.Models = c.newSessions(), c.modelGroups()
	if !each {
		r.Cache.Prediction.Each = nil
	}
	if c.opts.Detail {
		r.Detail = &Detail{Series: newSeries(c.requests, r.Window, &c.tokens, &c.inFlight)}
		r.Detail.ByISL = c.groups(islBands(), 0, false, islOf)
	}
	if c.opts.Parts != nil {
		r.PartFaults, r.Parts = c.opts.Parts.faults, c.opts.Parts.results(r)
	}
	r.Verdict = judge(r)
	return r
}

func (c *collector) setDistributions() {
	r := c.result
	if r.Reasoned == 0 {
		r.TTFVT = r.TTFT
	}
	sizes := make([]stats.Counted, 0, len(c.chunkSizes))
	for tokens, n := range c.chunkSizes {
		sizes = append(sizes, stats.Counted{Value: float64(tokens), Count: n})
	}
	r.TokensPerChunk = stats.OfCounts(sizes)
	for _, gaps := range c.opts.Gaps {
		c.gaps.AddN(trace.MS(time.Duration(gaps.NS)), int(gaps.Count))
		r.GapsCounted += int(gaps.Count)
	}
	r.ITL = c.gaps.Sample()
	switch {
	case c.tokenGaps == nil:
		r.ITLPerToken = r.ITL
	case len(c.opts.Gaps) == 0: // counted gaps are not of single tokens
		r.ITLPerToken = c.tokenGaps.Sample()
	}
}

func (c *collector) setRates() {
	r := c.result
	r.PeakConcurrency = c.inFlight.most()
	r.PeakOutputRate, r.PeakEventRate, r.PeakSendRate = c.tokens.mostTokens(), c.tokens.mostEvents(), c.sent.mostEvents()
	r.Duration = c.inFlight.length()
	if w := c.opts.Window; !w.whole() {
		r.Duration = w.To - w.From
		r.Output = c.tokensInside
	}
	if s := r.Duration.Seconds(); s > 0 {
		r.RequestRate = trace.Some(float64(r.Ended) / s)
		r.OutputRate = trace.Some(float64(r.Output) / s)
		r.TotalRate = trace.Some(float64(r.Input+r.Output) / s)
		if r.Goodput != nil {
			r.Goodput.Rate = trace.Some(float64(r.Goodput.Good) / s)
		}
	}
}

// reasoningTokens sums the server's counts of reasoning tokens.
type reasoningTokens struct{ tokens, requests int }

func (n *reasoningTokens) mean() trace.Opt[float64] { return trace.Ratio(n.tokens, n.requests) }

// addReasoning adds a completed request, before its latencies. TTFVT has its own values
// from the first answer with reasoning on.
func (c *collector) addReasoning(rec *replay.Record) {
	if n := rec.Counts.Reasoning; n.Set {
		c.reasoning.tokens += n.Value
		c.reasoning.requests++
	}
	if !rec.ReasoningOnly && !rec.FirstVisible.Set {
		return
	}
	r := c.result
	if r.Reasoned == 0 {
		c.latencies[TTFVT] = slices.Clone(c.latencies[TTFT])
	}
	r.Reasoned++
	if rec.ReasoningOnly {
		r.ReasoningOnly++
	}
}
