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
	c := newCollector(opts)
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

func newCollector(opts Options) *collector {
	return &collector{
		opts: opts, live: opts.LiveAnswers, examples: map[failures]string{}, chunks: newChunkCounter(opts.Window),
		requests: make([]Request, 0, max(opts.Expected, 0)), // growing would double the garbage
	}
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
	cached := c.newPredictor()
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
	r.Lengths.PromptsOff, r.Lengths.AsText, r.Lengths.TextTokens = r.Lengths.PromptsOff+cached.lengths.PromptsOff, cached.lengths.AsText, cached.lengths.TextTokens
	c.predictions = cached.prediction.Each
	r.Sessions, r.Models = c.newSessions(r.Duration), c.byModel()
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
	rows := recordedRows{rows: opts.Rows}
	reasoning, reasoned := 0, 0 // tokens by the server's count, and requests
	for q := range requests {
		r.Records++
		rows.add(q.Row)
		if q.impossible {
			r.Impossible++
		}
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
	if rows.rows > 0 {
		r.Sent, r.Repeated = opts.Sent, rows.repeated
		r.Missing = max(opts.Sent-rows.distinct-r.Unreadable, 0)
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

// addOutcome counts a request that ended in the window, and a failure outside it.
func (r *Result) addOutcome(q *Request) {
	failed := q.Class.Failed()
	switch {
	case !q.Ended && failed:
		r.FailedOutside++
	case !q.Ended:
		return
	case failed:
		r.Failed++
		r.Errors[q.Class]++
	case q.Class == replay.OK:
		r.Ended++
	default:
		r.Abandoned.add(q)
	}
	if r.Goodput != nil && q.Ended {
		r.Goodput.add(q)
	}
}

// addPrompt counts the prompt of a completed request.
func (r *Result) addPrompt(q *Request, opts *Options) {
	switch {
	case q.estimated:
		r.Lengths.Estimated++
	case q.Input < 0:
	case q.hasBase && opts.TextAnswers: // see predictor.compareLengths
		r.Lengths.Prompts++
	default:
		r.Lengths.Prompts++
		want := opts.countedISL(int(q.ISL))
		if off := int(q.Input) - want; 100*max(off, -off) > want {
			r.Lengths.PromptsOff++
		}
	}
	r.Input += q.InputTokens()
	if q.Input < 0 {
		r.InputEstimates++
	}
	if q.Cached >= 0 {
		r.Cached = trace.Some(r.Cached.Value + int(q.Cached))
		r.Cache.Requests++
	}
}

// addAnswer counts the answer to a completed request.
func (r *Result) addAnswer(q *Request) {
	r.Output += int(q.Output)
	if q.MissingDone {
		r.MissingDone++
	}
	if q.source != replay.ReportedTokens {
		r.OutputEstimates++
	}
	if q.source == replay.ContradictedTokens {
		r.Contradicted++
	}
	if q.Reported >= 0 {
		r.Lengths.Answers++
	}
	switch {
	case max(q.Output, q.Reported) > q.MaxTokens:
		r.Lengths.AnswersLonger++
	case q.Output < q.MaxTokens && q.Reported >= 0:
		r.Lengths.AnswersShorter++
	}
	if q.Reasoned {
		r.Reasoned++
		if !q.HasVisible {
			r.ReasoningOnly++
		}
	}
	if !q.Answered {
		return
	}
	if q.Output >= minStreamable {
		r.Streamable++
		if q.Last == q.First {
			r.Unstreamed++
		}
	}
	switch {
	case q.ByKernel:
		r.StampedByKernel++
		r.ChunksByKernel += int(q.chunks)
	case q.ByClient:
		r.StampedByClient++
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
			} else if q.Class == replay.Connect {
				refused++
			}
		}
		if q.WasSent && r.Window.Has(q.Sent) {
			sends.add(q.Sent)
			if q.Retried {
				r.Retried++
			} else if q.Ready > q.Due {
				r.Queued++
			}
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

// recordedRows checks the rows in the records against the rows of the run.
type recordedRows struct {
	rows     int // of the trace; 0 is unknown
	seen     replay.RowSet
	distinct int
	repeated int // further records of a row, and records of no row
}

func (c *recordedRows) add(row int) {
	switch {
	case c.rows == 0:
	case row < 0 || row >= c.rows || c.seen.Has(row):
		c.repeated++
	default:
		c.seen.Add(row)
		c.distinct++
	}
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
