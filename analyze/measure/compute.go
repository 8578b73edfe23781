package measure

import (
	"iter"
	"math"
	"sync"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Compute computes the metrics of a run from its records, in any order. Errors from
// records are returned unchanged.
func Compute(records iter.Seq2[replay.Record, error], opts Options) (*Result, error) {
	c := &collector{
		opts: opts, live: opts.LiveAnswers, examples: map[failures]string{},
		chunks:   chunkCounter{window: opts.Window, tokens: newTokenRate(), sizes: map[int]int{}},
		requests: make([]Request, 0, max(opts.Expected, 0)), // growing would double the garbage
	}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		c.add(&rec)
	}
	return c.finish(), nil
}

// collector keeps what the metrics need of the records until the last one is read.
type collector struct {
	opts       Options
	requests   []Request           // from sortRequests on by row
	examples   map[failures]string // the alphabetically first error
	chunks     chunkCounter
	blocks     promptBlocks
	links      []sessionLinks
	graph      *trace.Graph // of requests, by index
	inSessions int          // requests
	live       bool         // prompts contain real answers
	// predictions are those of the requests that have one.
	predictions []PredictedRequest
}

// failures are the failed requests of a class in a part of the run.
type failures struct {
	part  int32
	class replay.Class
}

func (c *collector) add(rec *replay.Record) {
	q := NewRequest(rec, &c.opts)
	if c.opts.Parts != nil {
		q.part = int32(c.opts.Parts.Latest())
	}
	if rec.Class.Failed() && q.Ended {
		addExample(c.examples, failures{q.part, rec.Class}, rec.Error)
	}
	if q.WasSent {
		q.blocks = c.blocks.add(c.blocks.idsOf(rec))
	}
	c.chunks.add(rec, q.Counted)
	c.addLinks(rec, &q)
	c.requests = append(c.requests, q)
}

// addExample keeps the alphabetically first error: the order of records does not matter.
func addExample[K comparable](to map[K]string, of K, text string) {
	if known := to[of]; known == "" || text != "" && text < known {
		to[of] = text
	}
}

func (c *collector) finish() *Result {
	c.sortRequests()
	each := c.opts.EachPrediction || c.opts.Detail
	cached := predictor{collector: c}
	var predicting sync.WaitGroup // in parallel: it takes as long as the rest
	predicting.Go(func() { cached.predict(each) })
	r := newResult(&c.opts, c.all)
	for of, text := range c.examples {
		addExample(r.Examples, of.class, text)
	}
	inFlight := c.setRates(r)
	predicting.Wait()
	c.blocks = promptBlocks{} // free the memory
	r.Turns, r.Cache.Prediction, r.Cache.MaxHits = cached.turns, cached.prediction, cached.maxHits
	r.Lengths.PromptsOff += cached.lengths.PromptsOff
	r.Lengths.AsText, r.Lengths.TextTokens = cached.lengths.AsText, cached.lengths.TextTokens
	c.predictions = cached.prediction.Each
	r.Sessions = c.newSessions(r.Duration)
	r.Models = groupBy(c, func(q *Request) (string, bool) { return q.Model(), q.Model() != "" }, func(name string) (string, int) { return name, 0 })
	if !each {
		r.Cache.Prediction.Each = nil
	}
	if c.opts.Detail {
		r.Detail = &Detail{Series: newSeries(c.requests, r.Window, &c.chunks.tokens, inFlight), ByISL: c.byISL(false)}
	}
	if c.opts.Parts != nil {
		r.PartFaults, r.Parts = c.opts.Parts.Faults, c.partResults(r)
	}
	r.Verdict = judge(r, false)
	return r
}

// all yields the requests of the run.
func (c *collector) all(yield func(*Request) bool) {
	for i := range c.requests {
		if !yield(&c.requests[i]) {
			return
		}
	}
}

// newResult computes the counts and latencies of the requests of a run, or of one of its
// parts.
func newResult(opts *Options, requests iter.Seq[*Request]) *Result {
	r := &Result{
		Virtual: opts.Virtual, ReadDelay: opts.ReadDelay, Merges: opts.Merges, Samples: opts.Samples,
		Skipped: opts.Skipped, Window: opts.Window, Thresholds: withDefaults(opts.Thresholds), MaxConcurrency: opts.MaxConcurrency, Closed: opts.Closed,
		Errors: map[replay.Class]int{}, Examples: map[replay.Class]string{},
		Lengths: Lengths{Template: opts.countedISL(0), Enforced: opts.LengthsEnforced},
		Goodput: newGoodput(opts.Objectives),
	}
	var seen replay.RowSet
	rows, reasoning, reasoned := 0, 0, 0 // rows, tokens by the server's count, and requests with such a count
	for q := range requests {
		r.Records++
		switch {
		case opts.Rows == 0:
		case q.Row < 0 || q.Row >= opts.Rows || seen.Has(q.Row):
			r.Repeated++
		default:
			seen.Add(q.Row)
			rows++
		}
		countIf(&r.Impossible, q.impossible)
		r.addOutcome(q)
		if q.Counted {
			r.Completed++
			r.addPrompt(q, opts)
			r.addAnswer(q)
			if q.Reasoning >= 0 {
				reasoning += int(q.Reasoning)
				reasoned++
			}
		}
	}
	r.Reasoning = trace.Ratio(reasoning, reasoned)
	r.setSendRates(requests)
	for l, d := range r.distributions() {
		if l := Latency(l); d != nil && l != ITL && l != ITLPerToken {
			*d = r.distribution(l, requests)
		}
	}
	if opts.Unreadable != nil {
		r.Unreadable, r.FirstUnreadable = opts.Unreadable()
		r.Records += r.Unreadable
	}
	if opts.Rows > 0 {
		r.Sent, r.Missing = opts.Sent, max(opts.Sent-rows-r.Unreadable, 0)
	}
	return r
}

// distribution returns the distribution of a latency that has one value per request.
func (r *Result) distribution(l Latency, requests iter.Seq[*Request]) stats.Sample {
	if l == TTFVT && r.Reasoned == 0 {
		return r.TTFT
	}
	values := make([]float64, 0, r.Records)
	for q := range requests {
		if l.OfCompleted() && !q.Counted || !l.OfCompleted() && !r.Window.Has(q.Sent) {
			continue
		}
		if value := q.Latency(l); value.Set {
			values = append(values, value.Value)
		}
	}
	return stats.Of(values)
}

func countIf(n *int, yes bool) {
	if yes {
		*n++
	}
}

// addOutcome counts a request that ended in the window, and a failure outside it.
func (r *Result) addOutcome(q *Request) {
	failed := q.Class.Failed()
	countIf(&r.FailedOutside, failed && !q.Ended)
	if !q.Ended {
		return
	}
	switch {
	case failed:
		r.Failed++
		r.Errors[q.Class]++
	case q.Class == replay.OK:
		r.Ended++
	default:
		r.Abandoned.add(q)
	}
	if r.Goodput != nil {
		r.Goodput.add(q)
	}
}

// addPrompt counts the prompt of a completed request.
func (r *Result) addPrompt(q *Request, opts *Options) {
	counted := q.Input >= 0
	countIf(&r.Lengths.Estimated, q.estimated)
	countIf(&r.Lengths.Prompts, counted && !q.estimated)
	if counted && !q.estimated && !(q.hasBase && opts.TextAnswers) { // else see predictor.compareLengths
		want := opts.countedISL(int(q.ISL))
		off := int(q.Input) - want
		countIf(&r.Lengths.PromptsOff, 100*max(off, -off) > want)
	}
	r.Input += q.InputTokens()
	countIf(&r.InputEstimates, !counted)
	if q.Cached >= 0 {
		r.Cached = trace.Some(r.Cached.Value + int(q.Cached))
		r.Cache.Requests++
	}
}

// addAnswer counts the answer to a completed request.
func (r *Result) addAnswer(q *Request) {
	r.Output += int(q.Output)
	countIf(&r.MissingDone, q.MissingDone)
	countIf(&r.OutputEstimates, q.source != replay.ReportedTokens)
	countIf(&r.Contradicted, q.source == replay.ContradictedTokens)
	longer := max(q.Output, q.Reported) > q.MaxTokens
	countIf(&r.Lengths.Answers, q.Reported >= 0)
	countIf(&r.Lengths.AnswersLonger, longer)
	countIf(&r.Lengths.AnswersShorter, !longer && q.Output < q.MaxTokens && q.Reported >= 0)
	countIf(&r.Reasoned, q.Reasoned)
	countIf(&r.ReasoningOnly, q.Reasoned && !q.HasVisible)
	if !q.Answered {
		return
	}
	countIf(&r.Streamable, q.Output >= minStreamable)
	countIf(&r.Unstreamed, q.Output >= minStreamable && q.Last == q.First)
	countIf(&r.StampedByClient, q.ByClient)
	if q.ByKernel {
		r.StampedByKernel++
		r.ChunksByKernel += int(q.chunks)
	}
}

// setSendRates computes the rates of due and of sent requests.
func (r *Result) setSendRates(requests iter.Seq[*Request]) {
	// sends are those in the window; dueSends and sentDues belong to the dues in it.
	var dues, sends, dueSends, sentDues instants
	refused := 0 // requests of dues without a connection
	for q := range requests {
		if r.Window.Has(q.Due) {
			dues.add(q.Due)
			if q.WasSent {
				dueSends.add(q.Sent)
				sentDues.add(q.Due)
			}
			countIf(&refused, !q.WasSent && q.Class == replay.Connect)
		}
		if q.WasSent && r.Window.Has(q.Sent) {
			sends.add(q.Sent)
			countIf(&r.Retried, q.Retried)
			countIf(&r.Queued, !q.Retried && q.Ready > q.Due)
		}
	}
	r.OfferedRate, r.AchievedRate, r.SentRate = dues.rate(), sends.rate(), dueSends.rate()
	r.SendingLate, r.Unsent = math.Abs(trace.MS(dueSends.span()-sentDues.span())), dues.n-dueSends.n-refused
}

// setRates computes the throughput of a run and what is derived from chunks. It returns the
// requests in flight.
func (c *collector) setRates(r *Result) *spans {
	inFlight, sent := &spans{}, newTokenRate()
	for q := range c.all {
		if !q.WasSent {
			continue
		}
		if from, to, some := r.Window.clip(q.Sent, q.Done); some {
			inFlight.add(from, to)
		}
		if r.Window.Has(q.Sent) {
			sent.add(q.Sent, 0)
		}
	}
	c.chunks.finish(r, c.opts.Gaps)
	r.PeakConcurrency, r.PeakSendRate = inFlight.most(), sent.most(ofEvents)
	r.From, r.Duration = inFlight.extent()
	if !r.Window.whole() {
		r.From, r.Duration, r.Output = r.Window.From, r.Window.To-r.Window.From, c.chunks.inside
	}
	if s := r.Duration.Seconds(); s > 0 {
		r.RequestRate = trace.Some(float64(r.Ended) / s)
		r.OutputRate = trace.Some(float64(r.Output) / s)
		r.TotalRate = trace.Some(float64(r.Input+r.Output) / s)
		if r.Goodput != nil {
			r.Goodput.Rate = trace.Some(float64(r.Goodput.Good) / s)
		}
	}
	return inFlight
}

// instants counts times and keeps the first and the last.
type instants struct {
	n           int
	first, last time.Duration
}

func (i *instants) add(at time.Duration) {
	if i.n == 0 {
		i.first, i.last = at, at
	}
	i.first, i.last = min(i.first, at), max(i.last, at)
	i.n++
}

// rate returns the number per second from the first to the last, absent if all times
// are equal.
func (i *instants) rate() trace.Opt[float64] {
	if i.span() <= 0 {
		return trace.Opt[float64]{}
	}
	return trace.Some(float64(i.n) / i.span().Seconds())
}

func (i *instants) span() time.Duration { return i.last - i.first }
