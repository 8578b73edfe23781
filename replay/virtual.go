package replay

import (
	"context"
	"fmt"
	"iter"
	"time"

	"moontide/trace"
)

// Model answers requests on a clock that its caller moves. Times are since the
// run's start and never go back.
type Model interface {
	// Submit sends a row of the trace, the row-th from 0, at now.
	Submit(now time.Duration, row int, r trace.Request)
	// Next is when something happens next, if nothing is submitted before. It
	// is false when nothing is under way.
	Next() (at time.Duration, ok bool)
	// Advance moves the clock to now and returns the answers that ended by
	// then, in order of their ends. They are the model's until the next call.
	Advance(now time.Duration) []Answer
}

// Answer is what became of a request to a [Model], as [Outcome] is for a
// [Call].
type Answer struct {
	Row         int
	First, Last Instant
	Done        time.Duration
	Gaps        []time.Duration // the record's from here on
	Counts      Counts
	Status      int
	Class       Class
	Error       string
}

// VirtualRunner replays traces against a model in virtual time, by the rules
// of a [Runner]: what is due when, what waits for a slot or for an earlier
// turn. No time passes while it works, so a request is sent at the instant at
// which it is ready: there is no client to be late.
type VirtualRunner struct {
	Model    Model
	Recorder Recorder
	// These are as those of a Runner.
	MaxConcurrency int
	Closed         bool
	Duration       time.Duration
	Sessions       *Sessions
}

// Run replays reqs, whose rows must be in order of arrival. When ctx ends it
// stops where it is; requests in flight are then not in the record, and counted
// as unrecorded. The Start of the tally is zero.
func (v *VirtualRunner) Run(ctx context.Context, reqs trace.Requests) (Tally, error) {
	rows, end := iter.Pull2(reqs)
	defer end()
	run := virtualRun{VirtualRunner: v, schedule: newSchedule(v.MaxConcurrency, rules{closed: v.Closed, until: v.Duration}), rows: rows, inFlight: map[int]sentJob{}}
	err := run.run(ctx)
	run.tally.Skipped = run.schedule.skipped
	run.tally.Stopped = err != nil
	run.tally.TimeUp = v.Duration > 0 && run.now >= v.Duration
	run.tally.Unrecorded += len(run.inFlight)
	return run.tally, err
}

// virtualAhead is how many rows are read before their time, beyond which nothing is
// gained: their number bounds the memory.
const virtualAhead = 64

type virtualRun struct {
	*VirtualRunner
	schedule *schedule
	rows     func() (trace.Request, error, bool) // the next one
	read     int
	ended    bool // of the trace
	now      time.Duration
	inFlight map[int]sentJob // by row
	tally    Tally
}

type sentJob struct {
	job         job
	ready, sent time.Duration
}

func (r *virtualRun) run(ctx context.Context) error {
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.fill(); err != nil {
			return err
		}
		r.sendDue()
		if more, err := r.wait(); !more || err != nil {
			return err
		}
	}
}

// wait moves the time on until there may be something to send, because its
// time has come or because an answer has ended. It is false at the end.
func (r *virtualRun) wait() (more bool, err error) {
	wake, waiting := r.schedule.wake(r.now)
	if r.Duration > 0 { // nothing is sent from then on
		wake, waiting = min(wake, r.Duration), waiting && r.now < r.Duration
	}
	for {
		at, ok := r.Model.Next()
		woken := waiting && (!ok || wake <= at)
		switch {
		case woken:
			at = wake
		case !ok && len(r.inFlight) > 0:
			return false, fmt.Errorf("simulating: nothing happens any more at %v, with %d requests in flight", r.now, len(r.inFlight))
		case !ok:
			return false, nil
		}
		r.now = max(r.now, at)
		answers := r.Model.Advance(r.now)
		for _, a := range answers {
			if err := r.record(a); err != nil {
				return false, err
			}
		}
		if woken || len(answers) > 0 {
			return true, nil
		}
	}
}

// fill reads rows until enough wait for their time.
func (r *virtualRun) fill() error {
	for !r.ended && r.schedule.rows < virtualAhead {
		req, err, ok := r.rows()
		switch {
		case err != nil:
			return err
		case !ok:
			r.ended = true
		default:
			r.schedule.add(job{req: req, row: r.read, last: r.Sessions != nil && r.Sessions.last.Has(r.read)})
			r.read++
		}
	}
	return nil
}

func (r *virtualRun) sendDue() {
	for {
		// A turn needs no preparing here, but it waits among the jobs alike.
		for turn, near := r.schedule.toPrepare(r.now); near; turn, near = r.schedule.toPrepare(r.now) {
			r.schedule.takeTurn()
			r.schedule.push(turn)
		}
		j, ready, ok := r.schedule.next(r.now)
		if !ok {
			return
		}
		r.tally.Sent++
		r.inFlight[j.row] = sentJob{j, ready, r.now}
		r.Model.Submit(r.now, j.row, j.req)
	}
}

// record ends a request.
func (r *virtualRun) record(a Answer) error {
	s := r.inFlight[a.Row]
	delete(r.inFlight, a.Row)
	r.schedule.ended(s.job, a.Done, a.Class == OK)
	if a.Class != OK {
		r.tally.Failed++
	}
	rec := Record{
		Request: s.job.req, Row: a.Row,
		Due: s.job.due, Ready: s.ready, Sent: trace.Some(s.sent), First: a.First, Last: a.Last, Done: a.Done,
		Gaps: a.Gaps, Counts: a.Counts,
		Status: a.Status, Class: a.Class, Error: a.Error,
	}
	if rec.First.Set {
		rec.Chunks = len(a.Gaps) + 1
	}
	if err := r.Recorder.Record(rec); err != nil {
		r.tally.Unrecorded++
		return err
	}
	return nil
}
