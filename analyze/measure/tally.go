package measure

import (
	"math"
	"slices"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// tally computes the counts and latencies for the verdict on a run, or on one of its parts.
type tally struct {
	opts        Options
	result      *Result
	rows        recordedRows
	kept        []Latency
	latencies   [latencyCount][]float64 // of those that are kept; unused for ITL: see collector.gaps
	dues, sends instants
	dueSends    instants // when the requests of dues were sent
	sentDues    instants // the dues of requests that were sent
	refused     int      // requests of dues without a connection
}

// allLatencies are those of a whole run.
var allLatencies = func() (all []Latency) {
	for l := NoLatency + 1; l < latencyCount; l++ {
		if l != ITL {
			all = append(all, l)
		}
	}
	return all
}()

// newTally returns a tally that keeps some latencies. It preallocates memory: growing
// slices would double the garbage.
func newTally(opts Options, kept []Latency) tally {
	t := tally{
		opts: opts, kept: kept,
		rows: recordedRows{rows: opts.Rows},
		result: &Result{
			Virtual: opts.Virtual, ReadDelay: opts.ReadDelay, Merges: opts.Merges, Samples: opts.Samples,
			Skipped: opts.Skipped, Window: opts.Window, Thresholds: withDefaults(opts.Thresholds), MaxConcurrency: opts.MaxConcurrency, Closed: opts.Closed,
			Errors: map[replay.Class]int{}, Examples: map[replay.Class]string{},
			Lengths: Lengths{Template: opts.countedISL(0), Enforced: opts.LengthsEnforced},
			Goodput: newGoodput(opts.Objectives),
		},
	}
	for _, l := range kept {
		if l != TTFVT {
			t.latencies[l] = make([]float64, 0, max(opts.Expected, 0))
		}
	}
	return t
}

func (t *tally) add(rec *replay.Record, timing *Timing) {
	r, window := t.result, t.opts.Window
	r.Records++
	t.rows.add(rec.Row)
	if window.Has(rec.Due) {
		t.dues.add(rec.Due)
		if rec.Sent.Set {
			t.dueSends.add(rec.Sent.Value)
			t.sentDues.add(rec.Due)
		} else if rec.Class == replay.Connect {
			t.refused++
		}
	}
	if rec.Sent.Set && window.Has(rec.Sent.Value) {
		if rec.Retries > 0 {
			r.Retried++
		}
		if rec.Ready > rec.Due && rec.Retries == 0 {
			r.Queued++
		}
		t.sends.add(rec.Sent.Value)
	}
	if isImpossible(rec) {
		r.Impossible++
	}
	t.addOutcome(rec)
	completed := rec.Class == replay.OK && window.Holds(rec)
	t.addLatencies(rec, timing, completed)
	if !completed {
		return
	}
	r.Completed++
	if rec.MissingDone {
		r.MissingDone++
	}
	t.addPrompt(rec)
	t.addAnswer(rec)
	if timing.Answered {
		t.addStamps(rec)
	}
}

// addOutcome counts the requests that ended in the window, and failures outside it.
func (t *tally) addOutcome(rec *replay.Record) {
	r, ended := t.result, t.opts.Window.Has(rec.Done)
	switch failed := rec.Class.Failed(); {
	case failed && !ended:
		r.FailedOutside++
	case failed:
		r.Failed++
		r.Errors[rec.Class]++
		// Keep the alphabetically first: the order of records does not matter.
		if known := r.Examples[rec.Class]; known == "" || rec.Error != "" && rec.Error < known {
			r.Examples[rec.Class] = rec.Error
		}
	case rec.Class == replay.OK && ended:
		r.Ended++
	case ended:
		r.Abandoned.add(rec)
	}
}

// addPrompt counts the prompt of a completed request.
func (t *tally) addPrompt(rec *replay.Record) {
	r, n := t.result, rec.Counts
	switch {
	case runfile.ISLEstimated(rec):
		r.Lengths.Estimated++
	case n.Input.Set && rec.Base.Row.Set && t.opts.TextAnswers: // see liveHistory.compareLengths
		r.Lengths.Prompts++
	case n.Input.Set:
		r.Lengths.Prompts++
		want := t.opts.countedISL(rec.InputLength)
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
}

// addAnswer counts the answer to a completed request.
func (t *tally) addAnswer(rec *replay.Record) {
	r := t.result
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

func (t *tally) addLatencies(rec *replay.Record, timing *Timing, completed bool) {
	sent := rec.Sent.Set && t.opts.Window.Has(rec.Sent.Value)
	for _, l := range t.kept {
		if counts := l.OfCompleted() && completed || !l.OfCompleted() && sent; !counts || l == TTFVT && t.result.Reasoned == 0 {
			continue
		}
		if value := l.of(rec, timing); value.Set {
			t.latencies[l] = append(t.latencies[l], value.Value)
		}
	}
}

func (t *tally) addStamps(rec *replay.Record) {
	switch rec.Stamps {
	case replay.KernelStamps:
		t.result.StampedByKernel++
		t.result.ChunksByKernel += rec.Chunks
	case replay.ClientStamps:
		t.result.StampedByClient++
	}
}

// finish computes the figures of the result from what was added.
func (t *tally) finish() {
	r := t.result
	if t.opts.Unreadable != nil {
		r.Unreadable, r.FirstUnreadable = t.opts.Unreadable()
		r.Records += r.Unreadable
	}
	if rows := t.rows; rows.rows > 0 {
		r.Sent, r.Repeated = t.opts.Sent, rows.repeated
		r.Missing = max(t.opts.Sent-rows.distinct-r.Unreadable, 0)
	}
	for _, l := range t.kept {
		*r.distributions()[l] = stats.Of(t.latencies[l])
		t.latencies[l] = nil
	}
	r.OfferedRate, r.AchievedRate = t.dues.rate(), t.sends.rate()
	r.SendingLate, r.Unsent = math.Abs(trace.MS(t.dueSends.span()-t.sentDues.span())), t.dues.n-t.dueSends.n-t.refused
	r.SentRate = t.dueSends.rate()
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

// isImpossible reports whether the times of a record contradict each other by more than
// clocks may differ, for example after an edit.
func isImpossible(rec *replay.Record) bool {
	const clocks = 100 * time.Millisecond
	return isAnswered(rec) && (rec.First.Value < rec.Sent.Value-clocks || rec.Last.Value < rec.First.Value || rec.Done < rec.Last.Value-clocks ||
		rec.FirstVisible.Set && (rec.FirstVisible.Value < rec.First.Value || rec.FirstVisible.Value > rec.Last.Value) ||
		len(rec.Gaps) > 0 && slices.Min(rec.Gaps) < 0)
}
