// Package serving says what a replay measured: the metrics of a serving
// endpoint, each a pure function of the run's records, and how far they can be
// believed.
//
// [Compute] reads the records of a run once and returns a [Result]. The
// [Verdict] in it says whether the client, and not the server, made the
// numbers; print none without it.
package run

import (
	"iter"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// Options change how a run is looked at. The zero value works.
type Options struct {
	// BlockSize is the block size of the replayed trace in tokens, from which
	// follows how much of the prompts a cache could know; 0 leaves it out.
	BlockSize int
	// Virtual says that the run was simulated in virtual time, without a client
	// that could be late.
	Virtual bool
	// CountedISL is what the server counts of a prompt for a row of some ISL, if
	// it is as meant: a chat template adds to it. nil is the ISL itself.
	CountedISL func(isl int) int
	// TemplateTokens are those of the chat template that CountedISL goes by: the
	// rest of a prompt is what its row says.
	TemplateTokens int
	// ReadDelay and Merges are the run's, which no record tells.
	ReadDelay runfile.ReadDelay
	Merges    runfile.Merges
	// Gaps count the gaps between token chunks of a run whose records have none.
	Gaps []runfile.GapCount
	// Observed is what was seen of the client and the server while the run
	// lasted.
	Observed Observed
	// Window is the part of the run that is measured; the zero Span is all of
	// it. Requests outside it still count for what the server may have cached.
	Window Span
	// Thresholds are what the verdict goes by.
	Thresholds runfile.Thresholds
	// EachPrediction keeps what was predicted of every request.
	EachPrediction bool
	// Expected is about how many records there are, for which room is taken
	// before they come; 0 takes it as they do. Who knows it from a file bounds it
	// by the file's size.
	Expected int
	// Objectives are what Goodput goes by.
	Objectives []Objective
	// Detail keeps what pictures of a run take, and what was predicted of every
	// request: see [Result].
	Detail bool
}

func (o *Options) countedISL(isl int) int {
	if o.CountedISL == nil {
		return isl
	}
	return o.CountedISL(isl)
}

// ownISL is how many tokens of its row's prompt a request had: fewer than the
// ISL where prompts were made shorter by a template, though not shorter than one.
func (o *Options) ownISL(isl int) int {
	return max(o.countedISL(isl)-o.TemplateTokens, min(isl, 1))
}

// Result is what a run measured. Latencies are in milliseconds and cover the
// completed requests alone.
type Result struct {
	// Window is the part of the run that was measured; the zero Span is all of
	// it. Completed and Failed are then the requests that lie wholly inside,
	// from their sending to their end, which in a short window are the short
	// ones. Output is all tokens that arrived inside, whoever's they are, and
	// RequestRate goes by Ended.
	Window    Span
	Completed int
	Ended     int // requests that ended well inside the window, whenever they began
	Failed    int
	Errors    map[replay.Class]int // failed requests by class
	// Examples hold an error of each class, as the server or the system worded
	// it: who prints one has to make it harmless.
	Examples map[replay.Class]string

	// Duration is from the first request sent to the last one done, failed
	// ones among them, or the length of the window. Nothing is a rate where
	// there is none.
	Duration time.Duration
	// Input, Output and Cached count tokens of the completed requests, as the
	// server reported them; where it did not, Input is the trace's length and
	// Output the number of chunks, and the request counts as an estimate.
	Input, Output             int
	InputEstimates            int
	OutputEstimates           int
	Cached                    trace.Opt[int]     // absent where the server never said
	RequestRate               trace.Opt[float64] // completed requests a second
	OutputRate, TotalRate     trace.Opt[float64] // tokens a second
	PeakOutputRate            float64            // most tokens in any second
	PeakConcurrency           int                // most requests in flight
	PeakEventRate             float64            // most token chunks in any second
	PeakSendRate              float64            // most requests sent in any second
	OfferedRate, AchievedRate trace.Opt[float64] // requests a second, as due and as sent

	// TTST is the gap between the first token chunk and the second.
	TTFT, TTST, TPOT, ITL, E2EL stats.Sample
	// The same from the instant the trace asked for, so that a client or a
	// limit that holds requests back does not look like a fast server.
	TTFTFromSchedule, E2ELFromSchedule stats.Sample
	// Of every request that was sent: ClientLag = sent - ready - connect is the
	// client's own lateness; ConnectTime is the wait for a connection, which the
	// server and the network cause; QueueTime = ready - due is the wait for a
	// slot or for the turn before; ScheduleLag = sent - due is their sum.
	ClientLag, ConnectTime, QueueTime, ScheduleLag stats.Sample

	// StampedByKernel and StampedByClient count the completed requests by whose
	// their instants of arrival are. Where they are the kernel's, FirstStampError
	// bounds how much too long the TTFT of a request may be, and MaxStampError how
	// much too late any of its instants may be, because the client read at once
	// what may have arrived separately.
	StampedByKernel, StampedByClient int
	// GapsNotKept are the gaps between token chunks of records that do not have
	// them, GapsCounted those of them that ITL knows from being counted: all, but
	// for a run that was killed.
	GapsNotKept, GapsCounted int
	FirstStampError          stats.Sample
	MaxStampError            stats.Sample
	ReadDelay                runfile.ReadDelay // as given
	Merges                   runfile.Merges    // as given
	Observed                 Observed          // as given
	Thresholds               runfile.Thresholds

	Goodput *Goodput // nil without objectives
	Detail  *Detail  // nil where Options did not ask for it
	Lengths Lengths
	Cache   Cache
	Virtual bool // in virtual time: see Options
	Verdict Verdict
}

// Lengths compares what the trace asked for with what the server counted.
type Lengths struct {
	Template       int // tokens that were meant beside the ISL, in each prompt
	Prompts        int // completed requests whose prompt the server counted
	PromptsOff     int // of these, off by more than 1 % of what was meant: the trace's ISL, and a chat template
	Answers        int // completed requests whose answer the server counted
	AnswersShorter int // of these, shorter than the trace's OSL
	AnswersLonger  int
	Estimated      int // completed requests with a text whose ISL the trace only estimates: not among Prompts
}

// Cache compares what the server had cached with what the trace explains.
type Cache struct {
	// Explained are the prompt tokens of the completed requests that lie in
	// blocks which another request of the run had too, but for the first time
	// each was computed: no cache that began empty can hit more.
	Explained  trace.Opt[int]
	Requests   int // completed requests whose server said what was cached
	Prediction Prediction
}

// Compute describes a run, also one without a record. The records may come in
// any order. An error of records is returned as it is.
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

// expect makes room for the records to come: slices that grow by and by leave
// twice as much behind.
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

// collector holds what is kept of the records until the last one is known.
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

// addSent takes what is told of every request that was sent.
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

// addChunks counts the tokens of each chunk at its time: of all that was
// measured those of completed requests, of a window those of any.
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

// spreadChunks counts the chunks behind the first where their times were not
// kept: evenly over the time in which they came, in so many places at most.
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

// outputTokens are what the server counted, or else the chunks.
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
