package run

import (
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
		c.add(&rec)
	}
	return c.finish(), nil
}

type collector struct {
	opts         Options
	result       *Result
	latencies    [latencyCount][]float64 // unused for ITL: see gaps
	inFlight     spans
	dues, sends  instants
	tokens       tokenRate // an event is a chunk
	sent         tokenRate // an event is a request
	tokensInside int64     // in parts
	prompts      promptHistory
	gaps         stats.SampleBuilder // in nanoseconds
	counted      []stats.Counted     // used instead if some records have no gaps
	cached       int
	requests     []Request // for Detail
}

// newCollector preallocates memory: growing slices would double the garbage.
func newCollector(opts Options) *collector {
	expected := max(opts.Expected, 0)
	c := &collector{
		opts: opts,
		result: &Result{
			Virtual: opts.Virtual, ReadDelay: opts.ReadDelay, Merges: opts.Merges, Samples: opts.Samples,
			Window: opts.Window, Thresholds: withDefaults(opts.Thresholds),
			Errors: map[replay.Class]int{}, Examples: map[replay.Class]string{},
			Lengths: Lengths{Template: opts.countedISL(0)},
			Goodput: newGoodput(opts.Objectives),
		},
		tokens:   newTokenRate(),
		sent:     newTokenRate(),
		inFlight: spans{make([]time.Duration, 0, expected), make([]time.Duration, 0, expected)},
		prompts:  promptHistory{blockSize: opts.BlockSize, prompts: make([]prompt, 0, expected), targets: map[int]int32{}, extras: map[int]int{}},
	}
	for l := range c.latencies {
		if l := Latency(l); l != NoLatency && l != ITL {
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
	}
	if rec.Sent.Set {
		if from, to, some := window.clip(rec.Sent.Value, rec.Done); some {
			c.inFlight.add(from, to)
		}
		if window.Has(rec.Sent.Value) {
			c.sends.add(rec.Sent.Value)
			c.sent.add(rec.Sent.Value, 0)
		}
		c.prompts.add(rec, c.opts.ownISL(rec.InputLength), completed)
	}
	c.addChunks(rec)
	switch {
	case !ok && ended:
		r.Failed++
		r.Errors[rec.Class]++
		// Keep the alphabetically first, whatever the order of records.
		if known := r.Examples[rec.Class]; known == "" || rec.Error != "" && rec.Error < known {
			r.Examples[rec.Class] = rec.Error
		}
	case ok && ended:
		r.Ended++
	}
	if ended && r.Goodput != nil {
		r.Goodput.add(rec)
	}
	timing := TimingOf(rec)
	if c.opts.Detail {
		c.requests = append(c.requests, newRequest(rec, timing, completed))
	}
	c.addLatencies(rec, &timing, completed)
	if completed {
		r.Completed++
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
	// A chunk may carry several tokens: divide them evenly.
	parts := toParts(float64(outputTokens(rec)) / float64(max(rec.Chunks, 1)))
	at := rec.First.Value
	c.addChunk(at, parts)
	for _, gap := range rec.Gaps {
		at += gap
		c.addChunk(at, parts)
	}
	if rest := rec.Chunks - 1; len(rec.Gaps) == 0 && rest > 0 {
		c.spreadChunks(rec, rest, parts)
	}
}

// spreadChunks spreads the chunks after the first evenly, for records without chunk
// times.
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
	if c.opts.Window.Has(at) {
		c.tokens.add(at, parts)
		c.tokensInside += parts
	}
}

func (c *collector) addTokens(rec *replay.Record) {
	r, n := c.result, rec.Counts
	r.Output += outputTokens(rec)
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

func outputTokens(rec *replay.Record) int {
	if rec.Counts.Output.Set {
		return rec.Counts.Output.Value
	}
	return rec.Chunks
}

func (c *collector) addLatencies(rec *replay.Record, timing *Timing, completed bool) {
	sent := rec.Sent.Set && c.opts.Window.Has(rec.Sent.Value)
	for l := range c.latencies {
		l := Latency(l)
		if counts := l.OfCompleted() && completed || !l.OfCompleted() && sent; !counts || l == ITL {
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
	case replay.ClientStamps:
		c.result.StampedByClient++
	}
}

func (c *collector) addGaps(rec *replay.Record) {
	if len(rec.Gaps) == 0 {
		c.result.GapsNotKept += max(rec.Chunks-1, 0)
	}
	merged := len(c.opts.Gaps) > 0 // with a run whose records have no gaps
	for _, gap := range rec.Gaps {
		if merged {
			c.counted = append(c.counted, stats.Counted{Value: ms(gap), Count: 1})
		} else {
			c.gaps.Add(int64(gap))
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (c *collector) finish() *Result {
	r := c.result
	var predicting sync.WaitGroup // takes as long as the rest
	predicting.Go(func() {
		r.Cache.Prediction = c.prompts.predict(c.opts.Samples.Server.BlockSize, c.opts.EachPrediction || c.opts.Detail)
	})
	c.setDistributions()
	c.setRates()
	if r.Cache.Requests > 0 {
		r.Cached = trace.Some(c.cached)
	}
	predicting.Wait()
	r.Cache.MaxHits = c.prompts.maxHits()
	c.prompts = promptHistory{} // free the memory
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
	if len(c.opts.Gaps) == 0 {
		r.ITL = c.gaps.Sample(float64(time.Millisecond))
		return
	}
	for _, gaps := range c.opts.Gaps {
		c.counted = append(c.counted, stats.Counted{Value: ms(time.Duration(gaps.NS)), Count: int(gaps.Count)})
		r.GapsCounted += int(gaps.Count)
	}
	r.ITL = stats.OfCounts(c.counted)
}

func (c *collector) setRates() {
	r := c.result
	r.PeakConcurrency = c.inFlight.most()
	r.PeakOutputRate, r.PeakEventRate, r.PeakSendRate = c.tokens.mostTokens(), c.tokens.mostEvents(), c.sent.mostEvents()
	r.OfferedRate, r.AchievedRate = c.dues.rate(), c.sends.rate()
	r.Duration = c.inFlight.length()
	if w := c.opts.Window; !w.whole() {
		r.Duration = w.To - w.From
		r.Output = int(math.Round(float64(c.tokensInside) * part))
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
