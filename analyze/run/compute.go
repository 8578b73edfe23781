package run

import (
	"cmp"
	"iter"
	"math"
	"sync"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
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
		c.result.Records++
		c.rows.add(rec.Row)
		c.add(&rec)
	}
	if opts.Unreadable != nil {
		r := c.result
		r.Unreadable, r.FirstUnreadable = opts.Unreadable()
		r.Records += r.Unreadable
	}
	if rows := c.rows; rows.rows > 0 {
		r := c.result
		r.Sent, r.Repeated = opts.Sent, rows.repeated
		r.Missing = max(opts.Sent-rows.distinct-r.Unreadable, 0)
	}
	return c.finish(), nil
}

type collector struct {
	opts         Options
	result       *Result
	rows         recordedRows
	latencies    [latencyCount][]float64 // unused for ITL: see gaps
	inFlight     spans
	dues, sends  instants
	dueSends     instants  // when the requests of dues were sent
	sentDues     instants  // the dues of those
	refused      int       // requests of dues that got no connection
	tokens       tokenRate // an event is a chunk
	sent         tokenRate // an event is a request
	tokensInside int       // tokens of chunks inside the window
	prompts      promptHistory
	gaps         stats.SampleBuilder  // in nanoseconds
	tokenGaps    *stats.SampleBuilder // gaps per token; nil while they equal gaps
	counted      []stats.Counted      // used instead if some records have no gaps
	chunkSizes   map[int]int          // number of chunks by tokens
	models       modelCollector
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
		opts: opts, live: opts.LiveAnswers,
		rows: recordedRows{rows: opts.Rows},
		result: &Result{
			Virtual: opts.Virtual, ReadDelay: opts.ReadDelay, Merges: opts.Merges, Samples: opts.Samples,
			PartFaults: opts.PartFaults, Skipped: opts.Skipped, Window: opts.Window, Thresholds: withDefaults(opts.Thresholds), MaxConcurrency: opts.MaxConcurrency, Closed: opts.Closed,
			Errors: map[replay.Class]int{}, Examples: map[replay.Class]string{},
			Lengths: Lengths{Template: opts.countedISL(0), Enforced: opts.LengthsEnforced},
			Goodput: newGoodput(opts.Objectives),
		},
		chunkSizes: map[int]int{},
		tokens:     newTokenRate(),
		sent:       newTokenRate(),
		inFlight:   spans{make([]time.Duration, 0, expected), make([]time.Duration, 0, expected)},
		prompts:    promptHistory{blockSize: opts.BlockSize, prompts: make([]prompt, 0, expected), targets: map[int]int32{}, extras: map[int]int{}},
	}
	for l := range c.latencies {
		if l := Latency(l); l != NoLatency && l != ITL && l != TTFVT {
			c.latencies[l] = make([]float64, 0, expected)
		}
	}
	if opts.Detail {
		c.requests = make([]Request, 0, expected)
	}
	return c
}

func (c *collector) add(rec *replay.Record) {
	r, window := c.result, c.opts.Window
	inside, ended := window.Holds(rec), window.Has(rec.Done)
	ok := rec.Class == replay.OK
	completed := ok && inside
	if window.Has(rec.Due) {
		c.dues.add(rec.Due)
		if rec.Sent.Set {
			c.dueSends.add(rec.Sent.Value)
			c.sentDues.add(rec.Due)
		} else if rec.Class == replay.Connect {
			c.refused++
		}
	}
	if rec.Sent.Set {
		if from, to, some := window.clip(rec.Sent.Value, rec.Done); some {
			c.inFlight.add(from, to)
		}
		if window.Has(rec.Sent.Value) {
			if rec.Retries > 0 {
				r.Retried++
			}
			if rec.Ready > rec.Due && rec.Retries == 0 {
				r.Queued++
			}
			c.sends.add(rec.Sent.Value)
			c.sent.add(rec.Sent.Value, 0)
		}
		c.prompts.add(rec, c.opts.ownISL(rec.InputLength), completed)
	}
	if isImpossible(rec) {
		r.Impossible++
	}
	c.addChunks(rec)
	switch failed := rec.Class.Failed(); {
	case failed && !ended:
		r.FailedOutside++
	case failed:
		r.Failed++
		r.Errors[rec.Class]++
		// Keep the alphabetically first, whatever the order of records.
		if known := r.Examples[rec.Class]; known == "" || rec.Error != "" && rec.Error < known {
			r.Examples[rec.Class] = rec.Error
		}
	case ok && ended:
		r.Ended++
	case ended:
		r.Abandoned.add(rec)
	}
	if ended && r.Goodput != nil {
		r.Goodput.add(rec)
	}
	timing := TimingOf(rec)
	if c.opts.Detail || inSession(rec) {
		c.addRequest(rec, timing, completed)
	}
	c.addLatencies(rec, &timing, completed)
	if rec.Model != "" {
		c.models.add(rec, timing, window, completed)
	}
	if completed {
		r.Completed++
		if rec.MissingDone {
			r.MissingDone++
		}
		c.addTokens(rec)
		if timing.Answered {
			c.addStamps(rec)
			c.addGaps(rec)
		}
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

func (c *collector) addTokens(rec *replay.Record) {
	r, n := c.result, rec.Counts
	switch {
	case runfile.ISLEstimated(rec):
		r.Lengths.Estimated++
	case n.Input.Set:
		r.Lengths.Prompts++
		want := c.opts.countedISL(rec.InputLength)
		if off := n.Input.Value - want; 100*max(off, -off) > want {
			r.Lengths.PromptsOff++
		}
	}
	if n.Input.Set {
		r.Input += n.Input.Value
	} else {
		r.Input += rec.InputLength
		r.InputEstimates++
	}
	c.addAnswer(rec)
	if n.Cached.Set {
		c.cached += n.Cached.Value
		r.Cache.Requests++
	}
}

func (c *collector) addAnswer(rec *replay.Record) {
	r := c.result
	tokens, source := rec.OutputTokens()
	r.Output += tokens
	if source != replay.ReportedTokens {
		r.OutputEstimates++
	}
	if source == replay.ContradictedTokens {
		r.Contradicted++
	}
	if rec.Counts.Output.Set {
		r.Lengths.Answers++
	}
	if tokens >= minStreamable && isAnswered(rec) {
		r.Streamable++
		if rec.Last == rec.First {
			r.Unstreamed++
		}
	}
	switch asked := rec.MaxTokens(); {
	case max(tokens, rec.Counts.Output.Value) > asked:
		r.Lengths.AnswersLonger++
	case tokens < asked && rec.Counts.Output.Set:
		r.Lengths.AnswersShorter++
	}
}

func (c *collector) addLatencies(rec *replay.Record, timing *Timing, completed bool) {
	sent := rec.Sent.Set && c.opts.Window.Has(rec.Sent.Value)
	if completed {
		c.addReasoning(rec)
	}
	for l := range c.latencies {
		l := Latency(l)
		if counts := l.OfCompleted() && completed || !l.OfCompleted() && sent; !counts || l == ITL || l == TTFVT && c.result.Reasoned == 0 {
			continue
		}
		if value := l.of(rec, timing); value.Set {
			c.latencies[l] = append(c.latencies[l], value.Value)
		}
	}
}

func (c *collector) addStamps(rec *replay.Record) {
	switch rec.Stamps {
	case replay.KernelStamps:
		c.result.StampedByKernel++
		c.result.ChunksByKernel += rec.Chunks
	case replay.ClientStamps:
		c.result.StampedByClient++
	}
}

func (c *collector) addGaps(rec *replay.Record) {
	if len(rec.Gaps) == 0 {
		c.result.GapsNotKept += max(rec.Chunks-1, 0)
	}
	c.addTokenGaps(rec)
	merged := len(c.opts.Gaps) > 0 // with a run whose records have no gaps
	for _, gap := range rec.Gaps {
		if merged {
			c.counted = append(c.counted, stats.Counted{Value: ms(gap), Count: 1})
		} else {
			c.gaps.Add(int64(gap))
		}
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
		eachTokenGap(rec, func(gap time.Duration, tokens int) { c.tokenGaps.AddN(int64(gap), tokens) })
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (c *collector) finish() *Result {
	r := c.result
	var predicting sync.WaitGroup // takes as long as the rest
	c.sortRequests()
	each := c.opts.EachPrediction || c.opts.Detail
	predicting.Go(func() {
		live := c.newLiveHistory(cmp.Or(c.opts.ServerBlockSize, c.opts.Samples.Server.BlockSize))
		r.Turns = live.turns
		r.Cache.Prediction = live.predict(each || c.sessionRequests > 0)
		r.Cache.MaxHits = live.maxHits()
	})
	c.setDistributions()
	c.setRates()
	r.Models = c.models.groups()
	if r.Cache.Requests > 0 {
		r.Cached = trace.Some(c.cached)
	}
	r.Reasoning = c.reasoning.mean()
	predicting.Wait()
	c.prompts = promptHistory{} // free the memory
	r.Sessions = c.newSessions()
	if !each {
		r.Cache.Prediction.Each = nil
	}
	if c.opts.Detail {
		r.Detail = newDetail(c.requests, r, &c.tokens, &c.inFlight)
	}
	r.Verdict = judge(r)
	return r
}

func (c *collector) setDistributions() {
	r := c.result
	for l := range c.latencies {
		if l := Latency(l); l != NoLatency && l != ITL {
			*latencies[l].distribution(r) = stats.Of(c.latencies[l])
		}
	}
	if r.Reasoned == 0 {
		r.TTFVT = r.TTFT
	}
	sizes := make([]stats.Counted, 0, len(c.chunkSizes))
	for tokens, n := range c.chunkSizes {
		sizes = append(sizes, stats.Counted{Value: float64(tokens), Count: n})
	}
	r.TokensPerChunk = stats.OfCounts(sizes)
	if len(c.opts.Gaps) == 0 {
		r.ITL = c.gaps.Sample(float64(time.Millisecond))
		if r.ITLPerToken = r.ITL; c.tokenGaps != nil {
			r.ITLPerToken = c.tokenGaps.Sample(float64(time.Millisecond))
		}
		return
	}
	for _, gaps := range c.opts.Gaps {
		c.counted = append(c.counted, stats.Counted{Value: ms(time.Duration(gaps.NS)), Count: int(gaps.Count)})
		r.GapsCounted += int(gaps.Count)
	}
	r.ITL = stats.OfCounts(c.counted)
	if c.tokenGaps == nil {
		r.ITLPerToken = r.ITL
	}
}

func (c *collector) setRates() {
	r := c.result
	r.PeakConcurrency = c.inFlight.most()
	r.PeakOutputRate, r.PeakEventRate, r.PeakSendRate = c.tokens.mostTokens(), c.tokens.mostEvents(), c.sent.mostEvents()
	r.OfferedRate, r.AchievedRate = c.dues.rate(), c.sends.rate()
	r.SendingLate, r.Unsent = math.Abs(ms(c.dueSends.span()-c.sentDues.span())), c.dues.n-c.dueSends.n-c.refused
	r.SentRate = c.dueSends.rate()
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
