package replay

import (
	"container/heap"
	"math"
	"time"

	"moontide/trace"
)

// job is one row on its way to being sent.
type job struct {
	req  trace.Request
	row  int
	call Call // nil until prepared
	due  time.Duration
	from time.Duration // earliest instant at which it may be sent: due, or the end of the turn before
	turn bool          // it was not prepared with the rows, as a later turn of a session
	last bool          // no later row is of its session
	// opened is closed when the call's Open has returned; nil: it was not called
	opened chan struct{}
	begun  bool // the journal has it, and Start was called
}

// lead is how long before its time a later turn is prepared. Until then it is
// only a row: think times are long, and bodies take room.
const lead = time.Second

// openLead is how long before its time, at the latest, a request's connection
// is opened: a handshake to another continent and back, and less than servers
// keep a connection that says nothing. Those of up to twice as long are opened
// along with it, so that one wake serves many.
const openLead = 50 * time.Millisecond

// schedule decides what is sent next. It reads no clock and starts nothing:
// instants come in as arguments, so its laws can be tested to the nanosecond.
// It has one owner.
type schedule struct {
	rules
	waiting   jobs // prepared, in order of from
	near      jobs // prepared and opened, or being opened, in order of from
	openable  int  // most of near at once
	rows      int  // of waiting and near, the ones that are no later turns
	sessions  map[string]*session
	turns     jobs  // released turns that are still to be prepared
	preparing []job // turns that are being prepared, in the order in which they went
	mostTurns int   // most turns prepared, or being prepared, at once; 0 is no limit
	prepared  int   // of these turns
	lastTurn  job   // the one of all turns that went to be prepared that is to be sent last
	backlog   []job // of a closed loop: rows that nothing but room decides on, in order
	free      slots
	lastDue   time.Duration
	skipped   int // turns left out because an earlier turn failed
	moved     move
}

// rules are what a schedule goes by besides the trace.
type rules struct {
	// closed is a closed loop: a row has no time, it is due when there is room
	// for it, and a turn that is due goes before a row that begins something.
	closed bool
	until  time.Duration // what is ready no earlier is not sent; 0 is no end
	past   *ResumeState  // what an earlier part of the run did; nil is nothing
}

// session is the state of a conversation. It stays until its last row is over,
// where that is known, else until the run's end.
type session struct {
	busy   bool // a turn is waiting or in flight
	failed bool
	ended  time.Duration // when the last turn ended
	parked []job         // turns behind it, unprepared: only rows, no bodies
}

func newSchedule(maxConcurrency int, r rules) *schedule {
	s := &schedule{rules: r, sessions: map[string]*session{}, free: slots{limit: maxConcurrency}}
	if r.past != nil {
		s.sessions, s.lastDue = r.past.sessions, r.past.Clock
		s.moved = move{resumed: true, from: r.past.Clock, behind: r.past.lastRow}
	}
	return s
}

// add takes the next row of the trace. A row that opens no wait comes
// prepared; a later turn of a session does not, since its turn may be far off.
func (s *schedule) add(j job) {
	s.moved.see(j)
	id := j.req.SessionID
	if id == "" {
		s.arrive(j)
		return
	}
	c, later := s.sessions[id]
	switch {
	case !later:
		if !j.last {
			s.sessions[id] = &session{busy: true}
		}
		s.arrive(j)
	case c.failed:
		s.skip(j)
	case c.busy:
		c.parked = append(c.parked, j)
	default:
		s.release(c, j)
	}
}

// arrive takes a row that follows no other.
func (s *schedule) arrive(j job) {
	j = s.atItsTime(j)
	switch {
	case j.turn:
		heap.Push(&s.turns, j)
	case s.closed:
		s.backlog = append(s.backlog, j)
		s.rows++
	default:
		s.push(j)
	}
}

// atItsTime sets a row's due time to its arrival. A row without one belongs to
// the row before it.
func (s *schedule) atItsTime(j job) job {
	if j.req.Timestamp.Set {
		s.lastDue = s.moved.due(j)
	}
	j.due, j.from = s.lastDue, s.lastDue
	return j
}

// skip leaves a turn out, because one before it failed.
func (s *schedule) skip(j job) {
	s.skipped++
	if j.last {
		delete(s.sessions, j.req.SessionID)
	}
}

// release sets the due time of a turn whose turn before has ended, and has it
// prepared.
func (s *schedule) release(c *session, j job) {
	c.busy = true
	switch {
	case j.req.Delay.Set:
		j.due = c.ended + Milliseconds(j.req.Delay.Value)
	case j.req.Timestamp.Set:
		j.due = s.moved.due(j)
	default:
		j.due = c.ended
	}
	j.due = max(j.due, s.moved.from)
	j.from, j.turn = max(j.due, c.ended), true
	heap.Push(&s.turns, j)
}

// toPrepare returns the released turn whose time has come near, if there is
// one. It stays until takeTurn. Where requests are held, as many turns as there
// are sessions may be due: beyond mostTurns only one is prepared that goes
// before another.
func (s *schedule) toPrepare(now time.Duration) (j job, ok bool) {
	if len(s.turns) == 0 || s.turns[0].from > now+lead {
		return job{}, false
	}
	if s.mostTurns > 0 && s.prepared >= s.mostTurns && !before(s.turns[0], s.lastTurn) {
		return job{}, false
	}
	return s.turns[0], true
}

// takeTurn notes that the turn of toPrepare is being prepared; it comes back
// by push.
func (s *schedule) takeTurn() {
	turn := heap.Pop(&s.turns).(job)
	s.preparing = append(s.preparing, turn)
	if s.prepared++; before(s.lastTurn, turn) {
		s.lastTurn = turn
	}
}

// push makes a prepared job wait for its time.
func (s *schedule) push(j job) {
	if j.turn {
		s.preparing = s.preparing[1:] // they come back in the order in which they went
	} else {
		s.rows++
	}
	heap.Push(&s.waiting, j)
}

// next returns the job to be sent at now, if there is one, and the instant at
// which it was ready. It takes a slot, which ended gives back.
func (s *schedule) next(now time.Duration) (j job, ready time.Duration, ok bool) {
	s.admit(now)
	q := s.foremost()
	if len(*q) == 0 || (*q)[0].from > now || !s.free.any() {
		return job{}, 0, false
	}
	if ready = max((*q)[0].from, s.free.since()); s.until > 0 && ready >= s.until {
		return job{}, 0, false
	}
	s.free.take()
	j = heap.Pop(q).(job)
	if j.turn {
		s.prepared--
	} else {
		s.rows--
	}
	if s.closed {
		j.due = ready
	}
	return j, ready, true
}

// admit lets the next row of a closed loop come, if there is room for it that
// no turn wants.
func (s *schedule) admit(now time.Duration) {
	if len(s.backlog) == 0 || !s.free.any() {
		return
	}
	for _, q := range [][]job{*s.foremost(), s.turns, s.preparing} {
		if len(q) > 0 && q[0].from <= now {
			return
		}
	}
	heap.Push(&s.waiting, s.backlog[0])
	s.backlog[0] = job{}
	s.backlog = s.backlog[1:]
}

// foremost is the queue whose first job is to be sent first.
func (s *schedule) foremost() *jobs {
	if len(s.near) == 0 || len(s.waiting) > 0 && before(s.waiting[0], s.near[0]) {
		return &s.waiting
	}
	return &s.near
}

// toOpen takes a job whose time has come near enough to open its connection,
// if there is one and its request would have a slot. It comes back by
// pushOpened.
func (s *schedule) toOpen(now time.Duration) (j job, ok bool) {
	if !s.mayOpen() || s.waiting[0].from > now+2*openLead {
		return job{}, false
	}
	return heap.Pop(&s.waiting).(job), true
}

func (s *schedule) mayOpen() bool {
	return len(s.waiting) > 0 && len(s.near) < s.openable && s.free.more(len(s.near))
}

// pushOpened makes a job wait for its time whose connection is being opened.
func (s *schedule) pushOpened(j job) { heap.Push(&s.near, j) }

// wake returns the next instant after now at which next, toOpen or toPrepare
// has something if nothing else happens before.
func (s *schedule) wake(now time.Duration) (at time.Duration, ok bool) {
	if q := *s.foremost(); len(q) > 0 && s.free.any() {
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
		sooner(s.turns[0].from - lead)
	}
	return at, ok
}

// ended takes note that a job's request was over at an instant.
func (s *schedule) ended(j job, at time.Duration, ok bool) {
	s.free.give(at)
	c := s.sessions[j.req.SessionID]
	if c == nil {
		return
	}
	c.busy, c.ended = false, at
	switch {
	case !ok:
		c.failed = true
		parked := c.parked
		c.parked = nil
		for _, later := range parked {
			s.skip(later)
		}
	case len(c.parked) > 0:
		first := c.parked[0]
		c.parked = c.parked[1:]
		s.release(c, first)
	}
	if j.last {
		delete(s.sessions, j.req.SessionID)
	}
}

// idle reports whether nothing is left to be sent of what was added.
func (s *schedule) idle() bool {
	return len(s.waiting) == 0 && len(s.near) == 0 && len(s.backlog) == 0 && len(s.turns) == 0 && len(s.preparing) == 0
}

// slots counts free places under a limit and knows since when each is free. A
// limit of 0 is none.
type slots struct {
	limit int
	taken int
	given []time.Duration // when places were given back, oldest first
}

func (s *slots) any() bool { return s.more(0) }

// more reports whether a place is free besides n that are spoken for.
func (s *slots) more(n int) bool { return s.limit == 0 || s.taken+n < s.limit }

// since is when the place that has been free the longest became so: 0 for one
// that nobody has had yet.
func (s *slots) since() time.Duration {
	if s.limit == 0 || s.taken+len(s.given) < s.limit {
		return 0
	}
	return s.given[0]
}

// take takes the place that has been free the longest.
func (s *slots) take() {
	if s.limit > 0 && s.taken+len(s.given) == s.limit {
		s.given = s.given[1:]
	}
	s.taken++
}

func (s *slots) give(at time.Duration) {
	s.taken--
	if s.limit > 0 {
		s.given = append(s.given, at)
	}
}

// jobs is a heap by the instant a job may be sent from; rows of one instant
// keep the order of the trace.
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

// Milliseconds converts milliseconds to a duration, rounded to nanoseconds.
// It is exact for 49 days: beyond 2^32
// milliseconds a float no longer tells a nanosecond from the next. The whole
// milliseconds stay apart, for their product with a million would be rounded
// once more.
func Milliseconds(ms float64) time.Duration {
	whole, rest := math.Modf(ms)
	return time.Duration(whole)*time.Millisecond + time.Duration(math.Round(rest*float64(time.Millisecond)))
}
