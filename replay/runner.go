package replay

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"moontide/trace"
)

// Client prepares requests.
type Client interface {
	// Prepare does all work that can be done before the request is due. row is its
	// number in the trace, from 0. An error ends the run. Prepare is called from
	// two goroutines, for a row that waits for others after these have ended.
	Prepare(r trace.Request, row int) (Call, error)
}

// Forgetter is a [Client] or a [Model] that keeps data for rows to come.
type Forgetter interface {
	// Forget is called once for each row that will not be sent.
	Forget(row int)
}

// Call is one prepared request.
type Call interface {
	// Send sends the request, waits for the whole response and returns the outcome,
	// also of a failed request. It returns soon after ctx ends. It is called once,
	// in a separate goroutine.
	Send(ctx context.Context) Outcome
}

// Opener is a Call that can open its connection ahead of time.
type Opener interface {
	Call
	// Open is called at most once, shortly before Send, and returns before Send is
	// called. It returns soon after ctx ends. It reports no error; Send will.
	Open(ctx context.Context)
	// Discard is called instead of Send if an opened request is not sent.
	Discard()
}

// Starter is a Call that can begin to send without blocking. Simultaneous requests
// are then sent back to back instead of waiting for their goroutines to be
// scheduled.
type Starter interface {
	Call
	// Start is called at most once, right before Send, which continues what Start
	// began. Open has returned by then, and Discard is not called afterwards.
	Start()
}

// Recorder stores records. Record is called from one goroutine, once for each
// request when it ends. An error ends sending.
type Recorder interface {
	Record(Record) error
}

// Journal is a [Recorder] that also notes each request before it is sent, so that
// the requests in flight are known after a kill. Sending is called from many
// goroutines. After an error, neither this request nor any other is sent.
type Journal interface {
	Sending(row int) error
}

// Runner replays one trace. Its fields must not change after Run is called. All
// but Client are optional.
type Runner struct {
	Client   Client
	Recorder Recorder // nil means records are dropped
	// MaxConcurrency limits the requests in flight. Due requests wait in order for
	// a slot; the wait is client queue time. 0 means no limit.
	MaxConcurrency int
	// Closed makes a closed loop of MaxConcurrency requests or of Sessions.Open
	// sessions: arrivals are ignored and a request is due when it gets a slot. Later
	// turns that are due take precedence over new rows.
	Closed bool
	// Duration ends sending: requests that become ready at or after this time of
	// the run's clock are not sent; those in flight finish. 0 means no limit.
	Duration time.Duration
	// MaxErrors fails the run and ends sending when this many requests have
	// failed. 0 means no limit.
	MaxErrors int
	// Retries is how often a request that the server refuses with 429 or 503 is
	// sent again: after its Retry-After, or else after 1 s, 2 s, 4 s and so on.
	// Ready is then the time of the last attempt, and the wait is client queue
	// time.
	Retries int
	// Graph is that of the trace's [Plan]. Without it, rows can wait for earlier rows
	// only, and the Runner remembers every row with a session until the end.
	Graph *trace.Graph
	// Sessions limits sessions. It needs Graph.
	Sessions SessionLimits
	// Rows are the rows to send, if another process sends the others; nil means all. A
	// row must not wait for one that is not among them.
	Rows RowSet
	// Begin, if not nil, is called when the first requests are prepared and returns time
	// 0 of the run, which may be to come. An error fails the run.
	Begin func(ctx context.Context) (time.Time, error)
	// Resume continues an interrupted run. nil starts a new one.
	Resume *ResumeState
	// Ahead is the number of requests prepared, and of connections opened, before
	// they are due. 0 means 64.
	Ahead int
	// Precise sends within tens of microseconds of the due time if a CPU core is
	// idle. It costs at most 0.06 cores at 1,000 requests per second and nothing
	// when no request is due. Without it, and on systems other than Linux,
	// requests may be a millisecond late.
	Precise bool
	// Closing Drain ends sending; requests in flight finish.
	Drain <-chan struct{}

	ran  atomic.Bool
	live live
}

// Tally counts the outcomes of the rows that were read.
type Tally struct {
	Start      time.Time // time 0 of every record
	Sent       int       // requests that were started
	Failed     int       // of Sent
	Canceled   int       // of Failed, cut short by the end of ctx
	Abandoned  int       // of Sent, not of Failed: closed by the client, see [Abandoned]
	Skipped    int       // rows not sent because one that they wait for failed
	Cut        int       // rows not sent because their session was ended: by SessionLimits, the model's context, or an abandoned request
	Outgrown   int       // of Cut, those that do not fit the model's context themselves
	Unfinished int       // sessions that had begun and were not over when sending ended, without those of which a request failed, was abandoned or canceled
	Unrecorded int       // requests not stored by the recorder
	Stopped    bool      // Drain, ctx or a failure ended sending
	TimeUp     bool      // Duration ended sending
}

// ErrTooManyErrors reports that MaxErrors requests have failed.
var ErrTooManyErrors = errors.New("too many requests failed")

// ErrOutgrown is the error of Prepare for a turn that does not fit the model's
// context. It is not sent, and the session ends.
var ErrOutgrown = errors.New("the turn does not fit the model's context")

// ErrNoGraph reports session limits without a graph.
var ErrNoGraph = errors.New("limits of sessions need the trace's graph")

// ErrReused reports a second call of Run on a [Runner].
var ErrReused = errors.New("a Runner runs once: use a new one")

// Status is the progress of a run.
type Status struct {
	Sent, Done, Failed, InFlight int
	OutputTokens                 int       // of completed requests
	Start                        time.Time // time 0 of every record; zero until known
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

// Run replays reqs, whose rows must be in order of arrival, and returns when every
// request that was started has ended and is recorded. The clock starts when the
// first requests are prepared; an arrival of 0 is due at once. When ctx ends,
// requests in flight are cut short and Run returns promptly, even while it waits
// for reqs: the goroutine that reads reqs ends when reqs returns. Failed requests
// are not errors of Run.
func (r *Runner) Run(ctx context.Context, reqs trace.Requests) (Tally, error) {
	if r.ran.Swap(true) {
		return Tally{}, ErrReused
	}
	if r.Graph == nil && r.Sessions != (SessionLimits{}) {
		return Tally{}, ErrNoGraph
	}
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	run := &run{
		Runner:     r,
		schedule:   newSchedule(scheduleConfig{maxConcurrency: r.MaxConcurrency, closed: r.Closed, until: r.Duration, sessions: r.Sessions, graph: r.Graph, resume: r.Resume}),
		rows:       make(chan job, r.ahead()),
		turns:      make(chan job),
		prepared:   make(chan job),
		ended:      make(chan requestEnd, 256),
		records:    make(chan Record, 256),
		stop:       make(chan struct{}),
		firstRows:  make(chan struct{}),
		failed:     make(chan struct{}),
		notSending: make(chan struct{}),
	}
	run.journal, _ = r.Recorder.(Journal)
	if forgetter, can := r.Client.(Forgetter); can {
		run.schedule.forget = forgetter.Forget
	}
	var preparing, recording sync.WaitGroup
	rowsRead := make(chan struct{})
	go func() {
		defer close(rowsRead)
		run.prepareRows(reqs)
	}()
	preparing.Go(run.prepareTurns)
	recording.Go(run.record)

	select {
	case <-run.firstRows:
	case <-ctx.Done():
	case <-r.Drain:
	}
	run.begin(ctx)
	run.schedule.maxOpening, run.schedule.maxPrepared = r.ahead(), r.ahead()
	run.dispatch(ctx)
	close(run.stop)
	preparing.Wait()
	run.reading.wait(rowsRead)
	cut() // only unused connections are still being opened
	run.discard()
	run.requests.Wait()
	close(run.records)
	recording.Wait()

	run.tally.Start = run.start
	run.schedule.count(&run.tally)
	return run.tally, run.failure()
}

// begin sets the start of the run's clock.
func (r *run) begin(ctx context.Context) {
	start := time.Now()
	if r.opens.Load() { // the first connections have the lead of later ones
		start = start.Add(openLead)
	}
	if r.Begin != nil {
		agreed, err := r.Runner.Begin(ctx)
		if err != nil {
			r.fail(err)
		} else {
			start = agreed
		}
	}
	r.start = start.Add(-r.Resume.clock())
	r.live.start.Store(&r.start)
}

func (r *Runner) ahead() int { return cmp.Or(r.Ahead, 64) }

// run is the state of one replay. Rows flow from prepareRows through rows to
// dispatch, which owns the schedule. Released turns go through prepareTurns and
// back. Each request runs in its own goroutine and ends in ended and records.
type run struct {
	*Runner
	start    time.Time
	schedule *schedule
	rows     chan job // rows of the trace, in order; closed at its end
	turns    chan job // released turns to be prepared
	prepared chan job // prepared turns
	ended    chan requestEnd
	records  chan Record
	requests sync.WaitGroup
	journal  Journal
	opens    atomic.Bool // calls are Openers
	reading  streamReader
	tally    Tally // dispatch sets Sent, Stopped, TimeUp; record sets Failed, Canceled, Unrecorded

	firstRows  chan struct{} // closed when the first rows are prepared
	notSending chan struct{} // closed when dispatch has stopped sending
	stop       chan struct{} // closed when dispatch has returned

	errMu  sync.Mutex
	err    error
	failed chan struct{} // closed with the first error
}

type requestEnd struct {
	j      job
	at     time.Duration
	class  Class
	unsent bool // the journal failed, so it was not sent
}

// prepareRows reads the trace and prepares its rows ahead. Rows that wait for others
// are not prepared yet: their bodies would take memory until those end.
func (r *run) prepareRows(reqs trace.Requests) {
	defer close(r.rows)
	haveRows := sync.OnceFunc(func() { close(r.firstRows) })
	defer haveRows()
	row, passed := -1, 0
	before := waits(r.Graph)
	for req, err := range r.reading.each(reqs) {
		select {
		case <-r.stop: // possibly long ago, while waiting for reqs
			return
		default:
		}
		if err != nil {
			r.fail(err)
			return
		}
		row++
		j := job{req: req, row: row, before: before(req, row)}
		if r.Resume.has(row) || r.Rows != nil && !r.Rows.Has(row) {
			continue
		}
		if j.late = len(j.before) > 0 || r.Sessions.Open > 0; !j.late {
			j = r.prepare(j)
		}
		select {
		case r.rows <- j:
		case <-r.stop:
			return
		}
		if passed++; passed == cap(r.rows) {
			haveRows()
		}
	}
}

// prepareTurns prepares late rows shortly before they are due.
func (r *run) prepareTurns() {
	for {
		select {
		case j := <-r.turns:
			select {
			case r.prepared <- r.prepare(j):
			case <-r.stop:
				return
			}
		case <-r.stop:
			return
		}
	}
}

func (r *run) prepare(j job) job {
	call, err := r.Client.Prepare(j.req, j.row)
	j.outgrown = errors.Is(err, ErrOutgrown)
	j.call = callOrFailure(call, err)
	if _, can := j.call.(Opener); can {
		r.opens.Store(true)
	}
	return j
}
