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
	turn bool          // a later turn of a session
}

// lead is how long before its time a later turn is prepared. Until then it is
// only a row: think times are long, and bodies take room.
const lead = time.Second

// schedule decides what is sent next. It reads no clock and starts nothing:
// instants come in as arguments, so its laws can be tested to the nanosecond.
// It has one owner.
type schedule struct {
	waiting   jobs // prepared, in order of from
	rows      int  // of these, the ones that are no later turns
	sessions  map[string]*session
	turns     jobs // released turns that are still to be prepared
	preparing int  // turns that are being prepared
	free      slots
	lastDue   time.Duration
	skipped   int // turns left out because an earlier turn failed
}

// session is the state of a conversation. It stays until the run's end, since
// a later turn may still come.
type session struct {
	busy   bool // a turn is waiting or in flight
	failed bool
	ended  time.Duration // when the last turn ended
	parked []job         // turns behind it, unprepared: only rows, no bodies
}

func newSchedule(maxConcurrency int) *schedule {
	return &schedule{sessions: map[string]*session{}, free: slots{limit: maxConcurrency}}
}

// add takes the next row of the trace. A row that opens no wait comes
// prepared; a later turn of a session does not, since its turn may be far off.
func (s *schedule) add(j job) {
	if j.req.SessionID == "" {
		s.push(s.atItsTime(j))
		return
	}
	c, later := s.sessions[j.req.SessionID]
	if !later {
		c = &session{busy: true}
		s.sessions[j.req.SessionID] = c
		s.push(s.atItsTime(j))
		return
	}
	switch {
	case c.failed:
		s.skipped++
	case c.busy:
		c.parked = append(c.parked, j)
	default:
		s.release(c, j)
	}
}

// atItsTime sets a row's due time to its arrival. A row without one belongs to
// the row before it.
func (s *schedule) atItsTime(j job) job {
	if j.req.Timestamp.Set {
		s.lastDue = msToDuration(j.req.Timestamp.Value)
	}
	j.due, j.from = s.lastDue, s.lastDue
	return j
}

// release sets the due time of a turn whose turn before has ended, and has it
// prepared.
func (s *schedule) release(c *session, j job) {
	c.busy = true
	switch {
	case j.req.Delay.Set:
		j.due = c.ended + msToDuration(j.req.Delay.Value)
	case j.req.Timestamp.Set:
		j.due = msToDuration(j.req.Timestamp.Value)
	default:
		j.due = c.ended
	}
	j.from, j.turn = max(j.due, c.ended), true
	heap.Push(&s.turns, j)
}

// toPrepare returns the released turn whose time has come near, if there is
// one. It stays until takeTurn.
func (s *schedule) toPrepare(now time.Duration) (j job, ok bool) {
	if len(s.turns) == 0 || s.turns[0].from > now+lead {
		return job{}, false
	}
	return s.turns[0], true
}

// takeTurn notes that the turn of toPrepare is being prepared; it comes back
// by push.
func (s *schedule) takeTurn() {
	heap.Pop(&s.turns)
	s.preparing++
}

// push makes a prepared job wait for its time.
func (s *schedule) push(j job) {
	if j.turn {
		s.preparing--
	} else {
		s.rows++
	}
	heap.Push(&s.waiting, j)
}

// next returns the job to be sent at now, if there is one, and the instant at
// which it was ready. It takes a slot, which ended gives back.
func (s *schedule) next(now time.Duration) (j job, ready time.Duration, ok bool) {
	if len(s.waiting) == 0 || s.waiting[0].from > now || !s.free.any() {
		return job{}, 0, false
	}
	j = heap.Pop(&s.waiting).(job)
	if !j.turn {
		s.rows--
	}
	return j, max(j.from, s.free.take()), true
}

// wake returns the next instant after now at which next or toPrepare has
// something if nothing else happens before.
func (s *schedule) wake(now time.Duration) (at time.Duration, ok bool) {
	if len(s.waiting) > 0 && s.free.any() {
		at, ok = s.waiting[0].from, true
	}
	if len(s.turns) > 0 {
		if near := s.turns[0].from - lead; near > now && (!ok || near < at) {
			at, ok = near, true
		}
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
	if !ok {
		c.failed = true
		s.skipped += len(c.parked)
		c.parked = nil
		return
	}
	if len(c.parked) > 0 {
		first := c.parked[0]
		c.parked = c.parked[1:]
		s.release(c, first)
	}
}

// idle reports whether nothing is left to be sent of what was added.
func (s *schedule) idle() bool {
	return len(s.waiting) == 0 && len(s.turns) == 0 && s.preparing == 0
}

// slots counts free places under a limit and knows since when each is free. A
// limit of 0 is none.
type slots struct {
	limit int
	taken int
	since []time.Duration // of places that were given back, oldest first
}

func (s *slots) any() bool { return s.limit == 0 || s.taken < s.limit }

// take takes the place that has been free the longest and returns since when.
func (s *slots) take() time.Duration {
	s.taken++
	if s.limit == 0 || s.taken+len(s.since) <= s.limit {
		return 0 // a place that nobody has had yet
	}
	at := s.since[0]
	s.since = s.since[1:]
	return at
}

func (s *slots) give(at time.Duration) {
	s.taken--
	if s.limit > 0 {
		s.since = append(s.since, at)
	}
}

// jobs is a heap by the instant a job may be sent from; rows of one instant
// keep the order of the trace.
type jobs []job

func (q jobs) Len() int { return len(q) }
func (q jobs) Less(i, k int) bool {
	return q[i].from < q[k].from || q[i].from == q[k].from && q[i].row < q[k].row
}
func (q jobs) Swap(i, k int) { q[i], q[k] = q[k], q[i] }
func (q *jobs) Push(x any)   { *q = append(*q, x.(job)) }
func (q *jobs) Pop() any {
	last := len(*q) - 1
	j := (*q)[last]
	(*q)[last] = job{}
	*q = (*q)[:last]
	return j
}

func msToDuration(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}
