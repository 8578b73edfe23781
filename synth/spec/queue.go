package spec

// event is the next thing that a source or a session does.
type event struct {
	at      float64
	order   uint64 // of what happens at once
	session *session
	source  int // where session is nil
}

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

// queue holds what is to come, the first at its front: a binary heap. What
// happens at once comes in the order in which it was pushed.
type queue struct {
	events []event
	pushed uint64
}

func (q *queue) push(e event) {
	e.order = q.pushed
	q.pushed++
	q.events = append(q.events, e)
	at := len(q.events) - 1
	for at > 0 {
		above := (at - 1) / 2
		if !e.before(&q.events[above]) {
			break
		}
		q.events[at] = q.events[above]
		at = above
	}
	q.events[at] = e
}

// pop takes the first event out of a queue that is not empty.
func (q *queue) pop() event {
	first := q.events[0]
	end := len(q.events) - 1
	last := q.events[end]
	q.events = q.events[:end]
	if end == 0 {
		return first
	}
	at := 0
	for {
		below := 2*at + 1
		if below >= end {
			break
		}
		if right := below + 1; right < end && q.events[right].before(&q.events[below]) {
			below = right
		}
		if !q.events[below].before(&last) {
			break
		}
		q.events[at] = q.events[below]
		at = below
	}
	q.events[at] = last
	return first
}
