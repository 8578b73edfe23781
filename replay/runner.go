package replay

import (
	"context"
	"errors"
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

// Opener is a Call that can get a connection before it needs one, so that
// nothing is left to do at the request's time but to send it.
type Opener interface {
	Call
	// Open is called at most once, a moment before Send, which waits for its
	// return. When ctx ends it returns soon. What goes wrong, Send will meet.
	Open(ctx context.Context)
	// Discard is called instead of Send when a request that was opened is not
	// sent after all.
	Discard()
}

// Starter is a Call that can begin to send without waiting. Of many that are due
// at once each then leaves right behind the one before, where goroutines would
// wait for their turns.
type Starter interface {
	Call
	// Start is called at most once, right before Send, which goes on with what
	// Start began, if it could begin. Open has returned by then, and Discard is
	// not called any more.
	Start()
}

// Recorder keeps records. Record is called from one goroutine, once for each
// request as it ends. An error stops the run from sending more.
type Recorder interface {
	Record(Record) error
}

// Journal is a [Recorder] that is also told of each request before it is sent,
// so that a run that is killed can tell what was in flight. Sending is called
// from many goroutines. An error stops the run from sending this request and
// more.
type Journal interface {
	Sending(row int) error
}

// Runner replays traces. Its fields are set before Run and not changed after.
type Runner struct {
	Client   Client
	Recorder Recorder
	// MaxConcurrency limits the requests in flight; those that are due wait
	// for a slot, in order, and the wait is recorded as held. 0 is no limit.
	MaxConcurrency int
	// Closed makes a closed loop of MaxConcurrency: arrivals of 0 are no time
	// that was asked for, so a request is due when there is room for it. A turn
	// that is due goes before a row that begins something new.
	Closed bool
	// Duration ends the sending: what is ready no earlier on the run's clock is
	// not sent, and what is in flight may finish. 0 is no end.
	Duration time.Duration
	// MaxErrors ends the sending, as a failure of the run, when so many requests
	// have failed in all. 0 is no limit.
	MaxErrors int
	// Retries is how often a request is sent again that the server refuses for
	// now, with 429 or 503: when the server says that it may come again, or else
	// after 1 s, 2 s, 4 s and so on. A Ready is then the last of these instants,
	// and the wait is part of what was held. 0 never sends one again.
	Retries int
	// Sessions are those of the trace, of a [Plan]. Without them a Runner has to
	// remember every session to the end.
	Sessions *Sessions
	// Resume is what an earlier part of the run did; nil is nothing.
	Resume *ResumeState
	// Ahead is how many requests are prepared before their time, and of how
	// many the connections are opened. 0 means 64.
	Ahead int
	// Precise sends to within some ten microseconds of the due time, where the
	// machine has a processor to spare. It costs a share of one that grows with
	// the rate: at most 0.06 at 1,000 requests a second, nothing while none is
	// due. Without it, and on systems other than Linux, a timer may be late by
	// a millisecond.
	Precise bool
	// Drain, when closed, stops the sending; what is in flight may finish.
	Drain <-chan struct{}

	live live
}

// Tally counts what became of the rows that were read.
type Tally struct {
	Start      time.Time // the instant that is 0 in every record
	Sent       int       // requests that were started, however they ended
	Failed     int       // of these, the ones that did not end well
	Canceled   int       // of these, the ones that the end of ctx cut short
	Skipped    int       // later turns left out because an earlier one failed
	Unrecorded int       // requests that the recorder did not take
	Stopped    bool      // sending was stopped: by Drain, by ctx or by a failure
	TimeUp     bool      // sending ended because Duration had passed
}

// ErrTooManyErrors says that MaxErrors requests have failed.
var ErrTooManyErrors = errors.New("too many requests failed")

// Status is where a run is.
type Status struct {
	Sent, Done, Failed, InFlight int
	OutputTokens                 int       // of requests that are done
	Start                        time.Time // the instant that is 0 in every record; zero before
}

type live struct {
	sent, done, failed, tokens atomic.Int64
	start                      atomic.Pointer[time.Time]
}

// Status may be called at any time, from any goroutine.
func (r *Runner) Status() Status {
	done := r.live.done.Load()
	sent := max(r.live.sent.Load(), done)
	s := Status{Sent: int(sent), Done: int(done), Failed: int(r.live.failed.Load()), InFlight: int(sent - done), OutputTokens: int(r.live.tokens.Load())}
	if start := r.live.start.Load(); start != nil {
		s.Start = *start
	}
	return s
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
		schedule: newSchedule(r.MaxConcurrency, rules{r.Closed, r.Duration, r.Resume}),
		rows:     make(chan job, r.ahead()),
		turns:    make(chan job),
		prepared: make(chan job),
		ended:    make(chan ending, 256),
		records:  make(chan Record, 256),
		stop:     make(chan struct{}),
		primed:   make(chan struct{}),
		halt:     make(chan struct{}),
		over:     make(chan struct{}),
	}
	run.journal, _ = r.Recorder.(Journal)
	var preparing, recording sync.WaitGroup
	preparing.Go(func() { run.prepareRows(reqs) })
	preparing.Go(run.prepareTurns)
	recording.Go(run.record)

	<-run.primed
	run.start = time.Now().Add(run.headStart() - r.Resume.clock())
	r.live.start.Store(&run.start)
	run.schedule.openable, run.schedule.mostTurns = r.ahead(), r.ahead()
	run.dispatch(ctx)
	close(run.stop)
	preparing.Wait()
	cut() // nothing is in flight but what is being opened in vain
	run.discard()
	run.requests.Wait()
	close(run.records)
	recording.Wait()

	run.tally.Start = run.start
	run.tally.Skipped = run.schedule.skipped
	return run.tally, run.failure()
}

// headStart is how long before the run's clock begins the first connections are
// opened: as long as all others are before their requests.
func (r *run) headStart() time.Duration {
	if r.opens.Load() {
		return openLead
	}
	return 0
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
	opens    atomic.Bool   // calls are of the kind that is opened before its time
	requests sync.WaitGroup
	tally    Tally // Sent, Stopped, TimeUp: of dispatch; Failed, Canceled, Unrecorded: of record
	journal  Journal
	over     chan struct{} // closed by dispatch when it sends no more

	errMu sync.Mutex
	err   error
	halt  chan struct{} // closed with the first error
}

type ending struct {
	j      job
	at     time.Duration
	ok     bool
	unsent bool // it could not be noted, so it was not sent
}

// prepareRows reads the trace and prepares its rows ahead. A later turn of a
// session is passed on as it is: its body would wait, and take room, for as
// long as the turns before it last.
func (r *run) prepareRows(reqs trace.Requests) {
	defer close(r.rows)
	primed := sync.OnceFunc(func() { close(r.primed) })
	defer primed()
	row, passed := -1, 0
	later := r.laterTurns()
	for req, err := range reqs {
		if err != nil {
			r.fail(err)
			return
		}
		row++
		j := job{req: req, row: row, turn: later(req.SessionID, row)}
		if r.Resume.has(row) {
			continue
		}
		if r.Sessions != nil {
			j.last = r.Sessions.last.Has(row)
		}
		if !j.turn {
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
		if passed++; passed == cap(r.rows) {
			primed()
		}
	}
}

// laterTurns tells rows, which are asked for in order, that follow a turn of
// their session.
func (r *run) laterTurns() func(session string, row int) bool {
	if r.Sessions != nil {
		return func(session string, row int) bool { return session != "" && !r.Sessions.first.Has(row) }
	}
	seen := map[string]bool{}
	return func(session string, _ int) (later bool) {
		if session == "" {
			return false
		}
		later = seen[session]
		seen[session] = true
		return later
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
	if _, can := call.(Opener); can {
		r.opens.Store(true)
	}
	return j, nil
}
