package replay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"moontide/trace"
)

// Client knows how a request is made.
type Client interface {
	// Prepare does everything that can be done before the request's time
	// comes. row is the row's number in the trace, from 0. An error ends the
	// run: what cannot be made is not the server's fault. Prepare is called
	// from two goroutines.
	Prepare(r trace.Request, row int) (Call, error)
}

// Call is one prepared request.
type Call interface {
	// Send sends the request, waits for the whole answer and says what
	// happened; a failed request is an outcome too. When ctx ends it returns
	// soon. It is called once, from a goroutine of its own.
	Send(ctx context.Context) Outcome
}

// Recorder keeps records. Record is called from one goroutine, once for each
// request as it ends. An error stops the run from sending more.
type Recorder interface {
	Record(Record) error
}

// Runner replays traces. Its fields are set before Run and not changed after.
type Runner struct {
	Client   Client
	Recorder Recorder
	// MaxConcurrency limits the requests in flight; those that are due wait
	// for a slot, in order, and the wait is recorded as held. 0 is no limit.
	MaxConcurrency int
	// Ahead is how many requests are prepared before their time. 0 means 64.
	Ahead int
	// Drain, when closed, stops the sending; what is in flight may finish.
	Drain <-chan struct{}

	live live
}

// Tally counts what became of the rows that were read.
type Tally struct {
	Start      time.Time // the instant that is 0 in every record
	Sent       int       // requests that were started, however they ended
	Failed     int       // of these, the ones that did not end well
	Skipped    int       // later turns left out because an earlier one failed
	Unrecorded int       // requests that the recorder did not take
	Stopped    bool      // sending was stopped: by Drain, by ctx or by a failure
}

// Status is where a run is.
type Status struct {
	Sent, Done, Failed, InFlight int
	OutputTokens                 int // of requests that are done
}

type live struct{ sent, done, failed, tokens atomic.Int64 }

// Status may be called at any time, from any goroutine.
func (r *Runner) Status() Status {
	done := r.live.done.Load()
	sent := max(r.live.sent.Load(), done)
	return Status{int(sent), int(done), int(r.live.failed.Load()), int(sent - done), int(r.live.tokens.Load())}
}

// Run replays reqs, whose rows must be in order of arrival, and returns when
// every request that was started has ended and is recorded. The clock starts
// when the first requests are prepared; an arrival of 0 is the start. When ctx
// ends, the requests in flight are cut short. An error is a failure of the
// run, never of a request.
func (r *Runner) Run(ctx context.Context, reqs trace.Requests) (Tally, error) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	run := &run{
		Runner:   r,
		schedule: newSchedule(r.MaxConcurrency),
		rows:     make(chan job, r.ahead()),
		turns:    make(chan job),
		prepared: make(chan job),
		ended:    make(chan ending, 256),
		records:  make(chan Record, 256),
		stop:     make(chan struct{}),
		primed:   make(chan struct{}),
		halt:     make(chan struct{}),
	}
	var preparing, recording sync.WaitGroup
	preparing.Go(func() { run.prepareRows(reqs) })
	preparing.Go(run.prepareTurns)
	recording.Go(run.record)

	<-run.primed
	run.start = time.Now()
	run.dispatch(ctx)
	close(run.stop)
	preparing.Wait()
	run.requests.Wait()
	close(run.records)
	recording.Wait()

	run.tally.Start = run.start
	run.tally.Skipped = run.schedule.skipped
	return run.tally, run.failure()
}

func (r *Runner) ahead() int {
	if r.Ahead > 0 {
		return r.Ahead
	}
	return 64
}

// run is the state of one replay. Rows flow from prepareRows through rows to
// dispatch, which owns the schedule; turns that were released make the detour
// over prepareTurns; each request runs in a goroutine of its own and ends in
// ended and records.
type run struct {
	*Runner
	start    time.Time
	schedule *schedule
	rows     chan job // of the trace, in order; closed at its end
	turns    chan job // released, to be prepared
	prepared chan job // and back
	ended    chan ending
	records  chan Record
	stop     chan struct{} // closed when nothing is sent any more
	primed   chan struct{} // closed when the first rows are prepared
	requests sync.WaitGroup
	tally    Tally // Sent, Stopped: of dispatch; Failed, Unrecorded: of record

	errMu sync.Mutex
	err   error
	halt  chan struct{} // closed with the first error
}

type ending struct {
	j  job
	at time.Duration
	ok bool
}

// prepareRows reads the trace and prepares its rows ahead. A later turn of a
// session is passed on as it is: its body would wait, and take room, for as
// long as the turns before it last.
func (r *run) prepareRows(reqs trace.Requests) {
	defer close(r.rows)
	primed := sync.OnceFunc(func() { close(r.primed) })
	defer primed()
	row := 0
	seen := map[string]bool{}
	for req, err := range reqs {
		if err != nil {
			r.fail(err)
			return
		}
		j := job{req: req, row: row}
		if s := req.SessionID; s == "" || !seen[s] {
			if s != "" {
				seen[s] = true
			}
			if j, err = r.prepare(j); err != nil {
				r.fail(err)
				return
			}
		}
		select {
		case r.rows <- j:
		case <-r.stop:
			return
		}
		if row++; row == cap(r.rows) {
			primed()
		}
	}
}

// prepareTurns prepares later turns when their time has come near.
func (r *run) prepareTurns() {
	for {
		select {
		case j := <-r.turns:
			j, err := r.prepare(j)
			if err != nil {
				r.fail(err)
				return
			}
			select {
			case r.prepared <- j:
			case <-r.stop:
				return
			}
		case <-r.stop:
			return
		}
	}
}

func (r *run) prepare(j job) (job, error) {
	call, err := r.Client.Prepare(j.req, j.row)
	if err != nil {
		return j, fmt.Errorf("preparing row %d: %w", j.row+1, err)
	}
	j.call = call
	return j, nil
}
