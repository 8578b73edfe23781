// Package serving says what a replay measured: the metrics of a serving
// endpoint, each a pure function of the run's records, and how far they can be
// believed.
//
// [Compute] reads the records of a run once and returns a [Result]. The
// [Verdict] in it says whether the client, and not the server, made the
// numbers; print none without it.
package serving

import (
	"iter"
	"time"

	"moontide/analyze/dist"
	"moontide/replay"
	"moontide/trace"
)

// Options change how a run is looked at. The zero value works.
type Options struct {
	// BlockSize is the block size of the replayed trace in tokens, from which
	// follows how much of the prompts a cache could know; 0 leaves it out.
	BlockSize int
}

// Result is what a run measured. Latencies are in milliseconds and cover the
// completed requests alone.
type Result struct {
	Completed int
	Failed    int
	Errors    map[replay.Class]int // failed requests by class
	// Examples hold an error of each class, as the server or the system worded
	// it: who prints one has to make it harmless.
	Examples map[replay.Class]string

	// Duration is from the first request sent to the last one done, failed
	// ones among them. Nothing is a rate where there is none.
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
	OfferedRate, AchievedRate trace.Opt[float64] // requests a second, as due and as sent

	TTFT, TPOT, ITL, E2EL dist.Distribution
	// The same from the instant the trace asked for, so that a client or a
	// limit that holds requests back does not look like a fast server.
	TTFTFromSchedule, E2ELFromSchedule dist.Distribution
	// Of every request that was sent: ClientLag = sent - ready is the client's
	// own, Held = ready - due waited for a slot or a turn, ScheduleLag is both.
	ClientLag, Held, ScheduleLag dist.Distribution

	Lengths Lengths
	Cache   Cache
	Verdict Verdict
}

// Lengths compares what the trace asked for with what the server counted.
type Lengths struct {
	Prompts        int // completed requests whose prompt the server counted
	PromptsOff     int // of these, off by more than 1 % of the trace's ISL
	Answers        int // completed requests whose answer the server counted
	AnswersShorter int // of these, shorter than the trace's OSL
	AnswersLonger  int
}

// Cache compares what the server had cached with what the trace explains.
type Cache struct {
	// Explained are the prompt tokens of the completed requests that lie in
	// blocks which another request of the run had too, but for the first time
	// each was computed: no cache that began empty can hit more.
	Explained trace.Opt[int]
	Requests  int // completed requests whose server said what was cached
}

// Compute describes a run, also one without a record. The records may come in
// any order. An error of records is returned as it is.
func Compute(records iter.Seq2[replay.Record, error], opts Options) (*Result, error) {
	c := collector{
		result:    &Result{Errors: map[replay.Class]int{}, Examples: map[replay.Class]string{}},
		tokens:    tokenRate{},
		explained: explainer{blockSize: opts.BlockSize, least: map[uint64]int{}},
	}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		c.add(rec)
	}
	return c.finish(), nil
}

// collector holds what is kept of the records until the last one is known.
type collector struct {
	result                     *Result
	ttft, tpot, e2el           []float64
	ttftSchedule, e2elSchedule []float64
	lag, held, schedule        []float64
	spans                      spans
	dues                       window
	sends                      window
	tokens                     tokenRate
	explained                  explainer
	gaps                       [][]time.Duration
	cached                     int
}

func (c *collector) add(rec replay.Record) {
	r := c.result
	c.dues.add(rec.Due)
	if rec.Sent.Set {
		c.sends.add(rec.Sent.Value)
		c.spans.add(rec.Sent.Value, rec.Done)
		c.lag = append(c.lag, ms(rec.Sent.Value-rec.Ready))
		c.held = append(c.held, ms(rec.Ready-rec.Due))
		c.schedule = append(c.schedule, ms(rec.Sent.Value-rec.Due))
		c.explained.add(rec.Request, rec.Class == replay.OK)
	}
	if rec.Class != replay.OK {
		r.Failed++
		r.Errors[rec.Class]++
		// The first by the alphabet, so that it does not go with the order.
		if known := r.Examples[rec.Class]; known == "" || rec.Error != "" && rec.Error < known {
			r.Examples[rec.Class] = rec.Error
		}
		return
	}
	r.Completed++
	c.addTokens(rec)
	c.addLatencies(rec)
}

func (c *collector) addTokens(rec replay.Record) {
	r, n := c.result, rec.Counts
	r.Output += outputTokens(rec)
	if n.Input.Set {
		r.Input += n.Input.Value
		r.Lengths.Prompts++
		if off := n.Input.Value - rec.InputLength; 100*max(off, -off) > rec.InputLength {
			r.Lengths.PromptsOff++
		}
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
func outputTokens(rec replay.Record) int {
	if rec.Counts.Output.Set {
		return rec.Counts.Output.Value
	}
	return rec.Chunks
}

func (c *collector) addLatencies(rec replay.Record) {
	if !rec.Sent.Set || !rec.First.Set || !rec.Last.Set {
		return
	}
	sent, first, last := rec.Sent.Value, rec.First.Value, rec.Last.Value
	c.ttft = append(c.ttft, ms(first-sent))
	c.e2el = append(c.e2el, ms(last-sent))
	c.ttftSchedule = append(c.ttftSchedule, ms(first-rec.Due))
	c.e2elSchedule = append(c.e2elSchedule, ms(last-rec.Due))
	output := outputTokens(rec)
	// The TPOT of a one-token answer does not exist; it is not 0.
	if output > 1 {
		c.tpot = append(c.tpot, ms(last-first)/float64(output-1))
	}
	// A chunk may carry several tokens: each weighs its share.
	weight := float64(output) / float64(max(rec.Chunks, 1))
	at := first
	c.tokens.add(at, weight)
	c.gaps = append(c.gaps, rec.Gaps)
	for _, gap := range rec.Gaps {
		at += gap
		c.tokens.add(at, weight)
	}
}

func (c *collector) finish() *Result {
	r := c.result
	r.TTFT, r.TPOT, r.ITL, r.E2EL = dist.Of(c.ttft), dist.Of(c.tpot), dist.Of(pooled(c.gaps)), dist.Of(c.e2el)
	r.TTFTFromSchedule, r.E2ELFromSchedule = dist.Of(c.ttftSchedule), dist.Of(c.e2elSchedule)
	r.ClientLag, r.Held, r.ScheduleLag = dist.Of(c.lag), dist.Of(c.held), dist.Of(c.schedule)
	r.PeakConcurrency = c.spans.most()
	r.PeakOutputRate = c.tokens.most()
	r.OfferedRate, r.AchievedRate = c.dues.rate(), c.sends.rate()
	r.Duration = c.spans.length()
	if s := r.Duration.Seconds(); s > 0 {
		r.RequestRate = trace.Some(float64(r.Completed) / s)
		r.OutputRate = trace.Some(float64(r.Output) / s)
		r.TotalRate = trace.Some(float64(r.Input+r.Output) / s)
	}
	if r.Cache.Requests > 0 {
		r.Cached = trace.Some(c.cached)
	}
	r.Cache.Explained = c.explained.tokens()
	r.Verdict = judge(r)
	return r
}

// pooled are all gaps in milliseconds. They are by far the most values of a
// run, so they are not collected in a slice that grows by copying.
func pooled(gaps [][]time.Duration) []float64 {
	n := 0
	for _, g := range gaps {
		n += len(g)
	}
	all := make([]float64, 0, n)
	for _, g := range gaps {
		for _, gap := range g {
			all = append(all, ms(gap))
		}
	}
	return all
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
