package replay

import (
	"context"
	"fmt"
	"iter"
	"time"

	"moontide/trace"
)

// Model serves requests on a clock moved by its caller. Times are since the start
// of the run and never decrease.
type Model interface {
	// Submit sends a request at now. row is its number in the trace, from 0.
	Submit(now time.Duration, row int, r trace.Request)
	// Next returns the time of the next event if nothing is submitted before then.
	// ok is false if there is none.
	Next() (at time.Duration, ok bool)
	// Advance moves the clock to now and returns the responses that have ended by
	// then, in order of their ends: records without Request, Due, Ready and Sent.
	// Chunks may be 0 for one more than there are Gaps. They are valid until the next
	// call, but the Model no longer uses their Gaps.
	Advance(now time.Duration) []Record
}

// Fitter is a [Model] with a limited context. A turn that does not fit is not sent, and
// ends its session: see [ErrOutgrown].
type Fitter interface {
	Fits(r trace.Request) bool
}

// VirtualRunner replays traces against a model in virtual time, with the
// scheduling of a [Runner]. There is no client lag: a request is sent when it is
// ready. It may run several times, with a new Model each.
type VirtualRunner struct {
	Model    Model
	Recorder Recorder
	// See [Runner].
	MaxConcurrency int
	Closed         bool
	Duration       time.Duration
	Graph          *trace.Graph
	Sessions       SessionLimits
}

// Run replays reqs, whose rows must be in order of arrival. When ctx ends it
// returns promptly, even while it waits for reqs; requests in flight are counted
// as unrecorded. The tally's Start is zero.
func (v *VirtualRunner) Run(ctx context.Context, reqs trace.Requests) (Tally, error) {
	if v.Graph == nil && v.Sessions != (SessionLimits{}) {
		return Tally{}, ErrNoGraph
	}
	run := &virtualRun{
		VirtualRunner: v,
		before:        waits(v.Graph),
		schedule:      newSchedule(scheduleConfig{maxConcurrency: v.MaxConcurrency, closed: v.Closed, until: v.Duration, sessions: v.Sessions, graph: v.Graph}),
		inFlight:      map[int]sentJob{},
	}
	if forgetter, can := v.Model.(Forgetter); can {
		run.schedule.forget = forgetter.Forget
	}
	ended := make(chan struct{})
	var runErr error // valid once ended is closed
	go func() {
		defer close(ended)
		var stop func()
		run.rows, stop = iter.Pull2(run.reading.each(reqs))
		defer stop()
		runErr = run.run(ctx)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	err := ctx.Err()
	if run.reading.wait(ended) {
		err = runErr
	}
	run.schedule.count(&run.tally)
	run.tally.Stopped = err != nil
	run.tally.TimeUp = v.Duration > 0 && run.now >= v.Duration
	run.tally.Unrecorded += len(run.inFlight)
	return run.tally, err
}

// virtualAhead is the number of rows read before they are due. It bounds memory.
const virtualAhead = 64

type virtualRun struct {
	*VirtualRunner
	schedule *schedule
	before   func(r trace.Request, row int) []int32
	reading  streamReader
	rows     func() (trace.Request, error, bool) // the next row
	read     int
	allRead  bool
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
		for sent := true; sent; sent = r.sendDue() { // more rows may be due than are read ahead
			if err := r.fill(ctx); err != nil {
				return err
			}
		}
		if more, err := r.wait(); !more || err != nil {
			return err
		}
	}
}

// wait advances the clock until there may be something to send: a request is due
// or a response has ended. It returns false at the end.
func (r *virtualRun) wait() (more bool, err error) {
	wake, waiting := r.schedule.wake(r.now)
	if r.Duration > 0 { // nothing is sent after Duration
		wake, waiting = min(wake, r.Duration), waiting && r.now < r.Duration
	}
	for {
		at, ok := r.Model.Next()
		woken := waiting && (!ok || wake <= at)
		switch {
		case woken:
			at = wake
		case !ok && len(r.inFlight) > 0:
			return false, fmt.Errorf("simulating: no more events at %v with %d requests in flight", r.now, len(r.inFlight))
		case !ok:
			return false, nil
		}
		r.now = max(r.now, at)
		responses := r.Model.Advance(r.now)
		for _, rec := range responses {
			if err := r.record(rec); err != nil {
				return false, err
			}
		}
		if woken || len(responses) > 0 {
			return true, nil
		}
	}
}

// fill reads rows until enough are scheduled.
func (r *virtualRun) fill(ctx context.Context) error {
	for !r.allRead && r.schedule.rows < virtualAhead {
		req, err, ok := r.rows()
		switch {
		case ctx.Err() != nil: // Run may have returned
			return ctx.Err()
		case err != nil:
			return err
		case !ok:
			r.allRead = true
		default:
			j := job{req: req, row: r.read, before: r.before(req, r.read)}
			j.late = len(j.before) > 0 || r.Sessions.Open > 0
			r.schedule.add(j)
			r.read++
		}
	}
	return nil
}

// sendDue sends every request that is due, and reports whether any was.
func (r *virtualRun) sendDue() (sent bool) {
	for {
		// Turns need no preparation here.
		for turn, near := r.schedule.toPrepare(r.now); near; turn, near = r.schedule.toPrepare(r.now) {
			r.schedule.takeTurn()
			if model, limited := r.Model.(Fitter); limited && len(turn.before) > 0 && !model.Fits(turn.req) {
				r.schedule.outgrow(turn, r.now)
				continue
			}
			r.schedule.push(turn)
		}
		j, ready, ok := r.schedule.next(r.now)
		if !ok {
			return sent
		}
		sent = true
		r.tally.Sent++
		r.inFlight[j.row] = sentJob{j, ready, r.now}
		r.Model.Submit(r.now, j.row, j.req)
	}
}

// record records the end of a request.
func (r *virtualRun) record(rec Record) error {
	s := r.inFlight[rec.Row]
	delete(r.inFlight, rec.Row)
	r.schedule.ended(s.job, rec.Done, resultOf(rec.Class))
	switch rec.Class {
	case OK:
	case Abandoned:
		r.tally.Abandoned++
	default:
		r.tally.Failed++
	}
	rec.Request, rec.Due, rec.Ready, rec.Sent = s.job.req, s.job.due, s.ready, trace.Some(s.sent)
	if rec.First.Set && rec.Chunks == 0 {
		rec.Chunks = len(rec.Gaps) + 1
	}
	if err := r.Recorder.Record(rec); err != nil {
		r.tally.Unrecorded++
		return err
	}
	return nil
}
