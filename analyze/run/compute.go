package run

import (
	"iter"
	"sync"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// Compute computes the metrics of a run from its records, in any order. A run
// without records is no error. Errors of records are returned unchanged.
func Compute(records iter.Seq2[replay.Record, error], opts Options) (*Result, error) {
	c := collector{
		opts:      opts,
		result:    newResult(opts),
		tokens:    newTokenRate(),
		sent:      newTokenRate(),
		explained: explainer{blockSize: opts.BlockSize},
		prompts:   prompts{blockSize: opts.BlockSize, targets: map[int]int32{}, extras: map[int]int{}},
	}
	c.prompts.ownISL = c.opts.ownISL
	if opts.Detail {
		c.detail = &detailer{requests: make([]Request, 0, max(opts.Expected, 0))}
	}
	c.expect(max(opts.Expected, 0))
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		c.add(rec)
	}
	return c.finish(), nil
}

// expect allocates memory ahead: slices that grow leave twice as much garbage.
func (c *collector) expect(records int) {
	for l := range c.latencies {
		if l := Latency(l); l != NoLatency && l != ITL {
			c.latencies[l] = make([]float64, 0, records)
		}
	}
	c.spans.begins, c.spans.ends = make([]time.Duration, 0, records), make([]time.Duration, 0, records)
	c.prompts.sent = make([]sentPrompt, 0, records)
}

func newResult(opts Options) *Result {
	return &Result{
		Virtual: opts.Virtual, ReadDelay: opts.ReadDelay, Merges: opts.Merges, Observed: opts.Observed,
		Window: opts.Window, Thresholds: withDefaults(opts.Thresholds),
		Errors: map[replay.Class]int{}, Examples: map[replay.Class]string{},
		Lengths: Lengths{Template: opts.countedISL(0)},
		Goodput: newGoodput(opts.Objectives),
	}
}

// collector holds what is kept of the records until the last one.
type collector struct {
	opts         Options
	result       *Result
	latencies    [latencyCount][]float64 // none of ITL: see gaps
	spans        spans
	dues         instants
	sends        instants
	tokens       tokenRate // and chunks, as events
	sent         tokenRate // of requests: each is one event
	tokensInside int64     // in parts
	prompts      prompts
	explained    explainer
	gaps         stats.SampleBuilder // in nanoseconds
	counted      []stats.Counted     // instead, where not all were kept
	cached       int
	detail       *detailer // nil where it is not asked for
}

func (c *collector) add(rec replay.Record) {
	r, window := c.result, c.opts.Window
	inside, ended := window.holds(&rec), window.has(rec.Done)
	ok := rec.Class == replay.OK
	if window.has(rec.Due) {
		c.dues.add(rec.Due)
	}
	timing := TimingOf(&rec)
	if rec.Sent.Set {
		c.addSent(rec, &timing)
		c.explained.add(rec.Request, c.prompts.add(&rec, ok && inside), ok && inside)
	}
	c.addChunks(rec)
	switch {
	case !ok && ended:
		r.Failed++
		r.Errors[rec.Class]++
		// The first by the alphabet, so that it does not go with the order.
		if known := r.Examples[rec.Class]; known == "" || rec.Error != "" && rec.Error < known {
			r.Examples[rec.Class] = rec.Error
		}
	case ok && ended:
		r.Ended++
	}
	if ended && r.Goodput != nil {
		r.Goodput.add(&rec)
	}
	if c.detail != nil {
		c.detail.add(&rec, timing, ok && inside)
	}
	if ok && inside {
		r.Completed++
		c.addTokens(rec)
		c.addLatencies(rec, &timing)
	}
}

// addSent adds what is measured of every request that was sent.
func (c *collector) addSent(rec replay.Record, timing *Timing) {
	if from, to, some := c.opts.Window.clip(rec.Sent.Value, rec.Done); some {
		c.spans.add(from, to)
	}
	if !c.opts.Window.has(rec.Sent.Value) {
		return
	}
	c.sends.add(rec.Sent.Value)
	c.sent.add(rec.Sent.Value, 0)
	for l := range c.latencies {
		if sent := latencies[l].sent; sent != nil {
			c.latencies[l] = append(c.latencies[l], ms(sent(timing)))
		}
	}
}

// addChunks counts the tokens of each chunk at its time: in a window those of all
// requests, else of completed ones.
func (c *collector) addChunks(rec replay.Record) {
	window := c.opts.Window
	if !isAnswered(&rec) || window.whole() && rec.Class != replay.OK {
		return
	}
	// A chunk may carry several tokens: each weighs its share.
	parts := partsOf(float64(outputTokens(&rec)) / float64(max(rec.Chunks, 1)))
	at := rec.First.Value
	c.addChunk(at, parts)
	for _, gap := range rec.Gaps {
		at += gap
		c.addChunk(at, parts)
	}
	if rest := rec.Chunks - 1; len(rec.Gaps) == 0 && rest > 0 {
		c.spreadChunks(&rec, rest, parts)
	}
}

// spreadChunks counts the chunks after the first where their times were not kept:
// evenly over the time in which they came.
func (c *collector) spreadChunks(rec *replay.Record, chunks int, parts int64) {
	const most = 1 << 12
	places := min(chunks, most)
	took := float64(rec.Last.Value-rec.First.Value) / float64(places)
	for i := 1; i <= places; i++ {
		here := int64(chunks*i/places - chunks*(i-1)/places)
		c.addChunk(rec.First.Value+time.Duration(took*float64(i)), parts*here)
	}
}

func (c *collector) addChunk(at time.Duration, parts int64) {
	if c.opts.Window.has(at) {
		c.tokens.add(at, parts)
		c.tokensInside += parts
	}
}

func (c *collector) addTokens(rec replay.Record) {
	r, n := c.result, rec.Counts
	r.Output += outputTokens(&rec)
	switch {
	case runfile.ISLEstimated(&rec):
		r.Lengths.Estimated++
	case n.Input.Set:
		r.Lengths.Prompts++
		meant := c.opts.countedISL(rec.InputLength)
		if off := n.Input.Value - meant; 100*max(off, -off) > meant {
			r.Lengths.PromptsOff++
		}
	}
	if n.Input.Set {
		r.Input += n.Input.Value
	} else {
		r.Input += rec.InputLength
		r.InputEstimates++
	}
	if n.Output.Set {
		r.Lengths.Answers++
		switch asked := max(rec.OutputLength, 1); {
		case n.Output.Value < asked:
			r.Lengths.AnswersShorter++
		case n.Output.Value > asked:
			r.Lengths.AnswersLonger++
		}
	} else {
		r.OutputEstimates++
	}
	if n.Cached.Set {
		c.cached += n.Cached.Value
		r.Cache.Requests++
	}
}

// outputTokens is the server's count, or else the number of chunks.
func outputTokens(rec *replay.Record) int {
	if rec.Counts.Output.Set {
		return rec.Counts.Output.Value
	}
	return rec.Chunks
}

func (c *collector) addLatencies(rec replay.Record, timing *Timing) {
	if !timing.Answered {
		return
	}
	switch rec.Stamps {
	case replay.KernelStamps:
		c.result.StampedByKernel++
	case replay.ClientStamps:
		c.result.StampedByClient++
	}
	for l := range c.latencies {
		l := Latency(l)
		switch spec := &latencies[l]; {
		case spec.answered != nil:
			if value := timing.Latency(l); value.Set {
				c.latencies[l] = append(c.latencies[l], value.Value)
			}
		case spec.other != nil && l != ITL:
			if d, ok := spec.other(&rec); ok {
				c.latencies[l] = append(c.latencies[l], ms(d))
			}
		}
	}
	for _, gap := range rec.Gaps {
		c.gaps.Add(int64(gap))
	}
	if len(rec.Gaps) == 0 {
		c.result.GapsNotKept += max(rec.Chunks-1, 0)
	} else if len(c.opts.Gaps) > 0 { // of a merge with a run that kept them
		for _, gap := range rec.Gaps {
			c.counted = append(c.counted, stats.Counted{Value: ms(gap), Count: 1})
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// finish computes the result.
func (c *collector) finish() *Result {
	r := c.result
	var predicting sync.WaitGroup // takes as long as everything else
	predicting.Go(func() {
		r.Cache.Prediction = c.prompts.predict(c.opts.Observed.Server.BlockSize, c.opts.EachPrediction || c.opts.Detail)
	})
	c.distributions()
	c.rates()
	if r.Cache.Requests > 0 {
		r.Cached = trace.Some(c.cached)
	}
	r.Cache.Explained = c.explained.tokens()
	predicting.Wait()
	c.prompts, c.explained = prompts{}, explainer{} // free the memory
	if c.detail != nil {
		r.Detail = c.detail.finish(r, &c.tokens)
	}
	r.Verdict = judge(r)
	return r
}

func (c *collector) distributions() {
	r := c.result
	for l := range c.latencies {
		if l := Latency(l); l != NoLatency && l != ITL {
			*latencies[l].distribution(r) = stats.Of(c.latencies[l])
		}
	}
	r.ITL = c.gaps.Sample(float64(time.Millisecond))
	if len(c.opts.Gaps) > 0 {
		for _, gaps := range c.opts.Gaps {
			c.counted = append(c.counted, stats.Counted{Value: ms(time.Duration(gaps.NS)), Count: int(gaps.Count)})
			r.GapsCounted += int(gaps.Count)
		}
		r.ITL = stats.OfCounts(c.counted)
	}
}

func (c *collector) rates() {
	r := c.result
	r.PeakConcurrency = c.spans.most()
	r.PeakOutputRate, r.PeakEventRate, r.PeakSendRate = c.tokens.mostTokens(), c.tokens.mostEvents(), c.sent.mostEvents()
	r.OfferedRate, r.AchievedRate = c.dues.rate(), c.sends.rate()
	r.Duration = c.spans.length()
	if w := c.opts.Window; !w.whole() {
		r.Duration = w.To - w.From
		r.Output = tokensOf(c.tokensInside)
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
