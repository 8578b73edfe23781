package replay

import (
	"container/heap"
	"math"
	"time"

	"moontide/trace"
)

// job is one row to be sent.
type job struct {
	req  trace.Request
	row  int
	call Call // nil until prepared
	due  time.Duration
	from time.Duration // earliest time to send: due, or the end of the rows waited for
	// before holds the rows that this one waits for.
	before []int32
	late   bool // prepared shortly before it is due, because it waits for something
	// outgrown is set if the row cannot be sent because its session has outgrown the
	// model's context.
	outgrown bool
	// closed when the call's Open has returned; nil if it was not called
	opened  chan struct{}
	started bool // in the journal, and Start was called
}

// prepareLead is how long before its due time a row that waited is prepared. Until
// then it is only a row, because think times are long and bodies take memory.
const prepareLead = time.Second

// openLead is the minimum time between opening a request's connection and sending:
// enough for a handshake across continents, but shorter than servers' timeouts for
// silent connections. Requests due within twice that time are opened together, so
// that one wake-up serves many.
const openLead = 50 * time.Millisecond

// schedule decides what is sent next. It reads no clock and starts nothing: times
// are arguments, so that tests can be exact. It is not safe for concurrent use.
type schedule struct {
	scheduleConfig
	waiting     jobs // prepared
	opening     jobs // prepared, with an open or opening connection
	maxOpening  int
	rows        int // number of jobs in waiting and opening that are not late
	deps        dependencies
	sessions    sessions
	turns       jobs  // released late rows, not prepared yet
	preparing   []job // late rows being prepared, in order
	maxPrepared int   // limit of prepared late rows and those being prepared; 0 means none
	prepared    int   // number of these rows
	lastTurn    job   // the last to be sent of all late rows prepared so far
	backlog     []job // closed loop: rows that wait only for a slot, in order
	slots       slots
	lastDue     time.Duration
	endings     []rowEnd      // queue of finish
	skipped     int           // rows skipped because one that they wait for failed
	cut         int           // rows not sent because their session was ended
	outgrown    int           // of these, the ones that do not fit the model's context
	forget      func(row int) // called for each row that will not be sent; may be nil
	shift       resumeShift
}

// scheduleConfig holds the fields of a [Runner] that decide when requests are
// sent.
type scheduleConfig struct {
	maxConcurrency int
	closed         bool
	until          time.Duration // Duration
	sessions       SessionLimits
	graph          *trace.Graph
	resume         *ResumeState
}

func newSchedule(c scheduleConfig) *schedule {
	s := &schedule{scheduleConfig: c, deps: newDependencies(c.graph), slots: slots{limit: c.maxConcurrency}, sessions: newSessions(c)}
	if c.resume != nil {
		s.deps.ends, s.lastDue = c.resume.ends, c.resume.Clock
		s.shift.ResumeState = c.resume
	}
	return s
}

// add adds the next row of the trace, prepared unless it is late.
func (s *schedule) add(j job) {
	s.shift.observe(j)
	switch {
	case s.sessions.overTurns(&j):
		w, _ := s.deps.add(j)
		w.released = true // it waits no more
		s.drop(j, cut, 0)
	case len(j.before) == 0:
		j = s.atArrival(j)
		if s.sessions.admit(j) {
			s.arrive(j)
		}
	default:
		if w, ready := s.deps.add(j); ready {
			s.release(w)
		}
	}
}

// arrive queues a row that no longer waits for other rows or for its session.
func (s *schedule) arrive(j job) {
	switch {
	case j.late:
		heap.Push(&s.turns, j)
	case s.closed:
		s.backlog = append(s.backlog, j)
		s.rows++
	default:
		s.push(j)
	}
}

// atArrival makes a row due at its arrival. A row without an arrival is due with
// the previous row.
func (s *schedule) atArrival(j job) job {
	if j.req.Timestamp.Set {
		s.lastDue = s.shift.due(j)
	}
	j.due, j.from = s.lastDue, s.lastDue
	return j
}

// release sets the due time of a row after the rows that it waits for have ended, or
// drops it.
func (s *schedule) release(w *waiter) {
	j := w.job
	if w.result != completed {
		s.drop(j, w.result, w.at)
		return
	}
	switch {
	case j.req.Delay.Set:
		j.due = w.at + Milliseconds(j.req.Delay.Value)
	case j.req.Timestamp.Set:
		j.due = s.shift.due(j)
	default:
		j.due = w.at
	}
	j.due = max(j.due, s.shift.clock())
	j.from, j.late = max(j.due, w.at), true
	s.arrive(j)
}

// drop drops a row that is not sent, and with it those that wait for it.
func (s *schedule) drop(j job, f result, at time.Duration) {
	if f == cut {
		s.cut++
	} else {
		s.skipped++
	}
	if s.forget != nil {
		s.forget(j.row)
	}
	s.finish(j, at, f)
}

// outgrow drops a row that did not fit the model's context when it was prepared.
func (s *schedule) outgrow(j job, now time.Duration) {
	if j.late {
		s.preparing = s.preparing[1:]
		s.prepared--
	}
	s.outgrown++
	s.drop(j, cut, now)
}

// finish handles the end of a row, whether it was sent or not. It may end the rows that
// wait for it in turn, so ends are queued instead of handled recursively.
func (s *schedule) finish(j job, at time.Duration, f result) {
	s.endings = append(s.endings, rowEnd{j.row, at, f})
	if len(s.endings) > 1 { // called by the loop below
		return
	}
	for i := 0; i < len(s.endings); i++ {
		e := s.endings[i]
		for _, w := range s.deps.ended(e.row, e.at, e.result) {
			s.release(w)
		}
		for _, next := range s.sessions.ended(e.row, e.at, e.result) {
			s.arrive(next)
		}
	}
	s.endings = s.endings[:0]
}

// rowEnd is the end of a row.
type rowEnd struct {
	row    int
	at     time.Duration
	result result
}

// toPrepare returns the late row to be prepared next, if one is due soon. takeTurn
// removes it. With a concurrency limit, one turn of every session may be due: beyond
// maxPrepared, only rows that precede a prepared one are prepared.
func (s *schedule) toPrepare(now time.Duration) (j job, ok bool) {
	if len(s.turns) == 0 || s.turns[0].from > now+prepareLead {
		return job{}, false
	}
	if s.maxPrepared > 0 && s.prepared >= s.maxPrepared && !before(s.turns[0], s.lastTurn) {
		return job{}, false
	}
	return s.turns[0], true
}

// takeTurn marks the row returned by toPrepare as being prepared. push adds it
// when it is prepared.
func (s *schedule) takeTurn() {
	turn := heap.Pop(&s.turns).(job)
	s.preparing = append(s.preparing, turn)
	if s.prepared++; before(s.lastTurn, turn) {
		s.lastTurn = turn
	}
}

// push adds a prepared job.
func (s *schedule) push(j job) {
	if j.late {
		s.preparing = s.preparing[1:] // late rows are prepared in order
	} else {
		s.rows++
	}
	heap.Push(&s.waiting, j)
}

// next returns the job to be sent now, if any, and when it became ready. It takes
// a slot, which ended frees.
func (s *schedule) next(now time.Duration) (j job, ready time.Duration, ok bool) {
	s.admitBacklog(now)
	q := s.nextQueue()
	if len(*q) == 0 || (*q)[0].from > now || !s.slots.free() {
		return job{}, 0, false
	}
	if ready = max((*q)[0].from, s.slots.freeSince()); s.until > 0 && ready >= s.until {
		return job{}, 0, false
	}
	s.slots.take()
	j = heap.Pop(q).(job)
	if j.late {
		s.prepared--
	} else {
		s.rows--
	}
	if s.closed {
		j.due = ready
	}
	return j, ready, true
}

// admitBacklog adds the next row of a closed loop if a slot is free for it and no
// turn is due.
func (s *schedule) admitBacklog(now time.Duration) {
	if len(s.backlog) == 0 || !s.slots.free() {
		return
	}
	for _, q := range [][]job{*s.nextQueue(), s.turns, s.preparing} {
		if len(q) > 0 && q[0].from <= now {
			return
		}
	}
	heap.Push(&s.waiting, s.backlog[0])
	s.backlog[0] = job{}
	s.backlog = s.backlog[1:]
}

// nextQueue returns the queue with the job to be sent next.
func (s *schedule) nextQueue() *jobs {
	if len(s.opening) == 0 || len(s.waiting) > 0 && before(s.waiting[0], s.opening[0]) {
		return &s.waiting
	}
	return &s.opening
}

// toOpen removes a job whose connection should be opened, if one is due soon and
// has a slot. pushOpening adds it again.
func (s *schedule) toOpen(now time.Duration) (j job, ok bool) {
	if !s.mayOpen() || s.waiting[0].from > now+2*openLead {
		return job{}, false
	}
	return heap.Pop(&s.waiting).(job), true
}

func (s *schedule) mayOpen() bool {
	return len(s.waiting) > 0 && len(s.opening) < s.maxOpening && s.slots.moreThan(len(s.opening))
}

// pushOpening adds a job whose connection is being opened.
func (s *schedule) pushOpening(j job) { heap.Push(&s.opening, j) }

// wake returns when next, toOpen or toPrepare will return something if nothing
// else happens before.
func (s *schedule) wake(now time.Duration) (at time.Duration, ok bool) {
	if q := *s.nextQueue(); len(q) > 0 && s.slots.free() {
		at, ok = q[0].from, true
	}
	sooner := func(t time.Duration) {
		if t > now && (!ok || t < at) {
			at, ok = t, true
		}
	}
	if s.mayOpen() {
		sooner(s.waiting[0].from - openLead)
	}
	if len(s.turns) > 0 {
		sooner(s.turns[0].from - prepareLead)
	}
	return at, ok
}

// ended handles the end of a job's request.
func (s *schedule) ended(j job, at time.Duration, f result) {
	s.slots.give(at)
	s.finish(j, at, f)
}

// count adds the rows that were not sent, and the sessions that are not over, to a
// tally.
func (s *schedule) count(t *Tally) {
	t.Skipped, t.Cut, t.Outgrown, t.Unfinished = s.skipped, s.cut, s.outgrown, s.sessions.unfinished()
}

// idle reports whether everything that was added has been sent.
func (s *schedule) idle() bool {
	return len(s.waiting) == 0 && len(s.opening) == 0 && len(s.backlog) == 0 && len(s.turns) == 0 && len(s.preparing) == 0
}

// slots is a concurrency limit that records since when each slot is free. A limit
// of 0 means none.
type slots struct {
	limit    int
	taken    int
	released []time.Duration // when the free slots were released, oldest first
}

func (s *slots) free() bool { return s.moreThan(0) }

// moreThan reports whether more than n slots are free.
func (s *slots) moreThan(n int) bool { return s.limit == 0 || s.taken+n < s.limit }

// freeSince returns when the slot that has been free for longest was freed, or 0
// if it was never taken.
func (s *slots) freeSince() time.Duration {
	if s.limit == 0 || s.taken+len(s.released) < s.limit {
		return 0
	}
	return s.released[0]
}

// take takes the slot that has been free for longest.
func (s *slots) take() {
	if s.limit > 0 && s.taken+len(s.released) == s.limit {
		s.released = s.released[1:]
	}
	s.taken++
}

func (s *slots) give(at time.Duration) {
	s.taken--
	if s.limit > 0 {
		s.released = append(s.released, at)
	}
}

// jobs is a heap in sending order: by time, then by row.
type jobs []job

func (q jobs) Len() int           { return len(q) }
func (q jobs) Less(i, k int) bool { return before(q[i], q[k]) }
func (q jobs) Swap(i, k int)      { q[i], q[k] = q[k], q[i] }
func (q *jobs) Push(x any)        { *q = append(*q, x.(job)) }
func (q *jobs) Pop() any {
	last := len(*q) - 1
	j := (*q)[last]
	(*q)[last] = job{}
	*q = (*q)[:last]
	return j
}

func before(a, b job) bool { return a.from < b.from || a.from == b.from && a.row < b.row }

// Milliseconds converts milliseconds to a duration, rounded to nanoseconds. It is
// exact up to 49 days: beyond 2^32 milliseconds a float64 cannot represent
// nanoseconds. Whole milliseconds are converted separately because multiplying the
// sum would round again.
func Milliseconds(ms float64) time.Duration {
	whole, rest := math.Modf(ms)
	return time.Duration(whole)*time.Millisecond + time.Duration(math.Round(rest*float64(time.Millisecond)))
}
