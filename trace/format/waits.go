package format

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
)

// ref names a request: the number of its session, and its number in the session.
type ref struct{ session, number int32 }

// part is what a later request of a session may wait for: an earlier request of the
// session, or a sub-agent that it called.
type part struct {
	begin, end float64 // ms
	endless    bool    // the end was not recorded; end is begin
	agent      bool
	order      int   // in which parts were added
	last       []ref // the requests whose end is that of the part
}

// timeline finds which parts a request of a session waited for, by recorded times:
// all that had ended when it began. It omits those that one of the others waited
// for. Requests are added in order of their begin.
type timeline struct {
	slack   float64 // ms by which a recorded begin may precede an end before it
	added   int
	running byEnd
	ended   []part
	latest  part // the ended request that began last
	begun   bool // there is one

	previous *ref // the request before
}

// next returns the number of the next request.
func (l *timeline) next() int32 {
	if l.previous == nil {
		return 0
	}
	return l.previous.number + 1
}

// addRequest adds a request; an end of NaN was not recorded.
func (l *timeline) addRequest(begin, end float64, request ref) {
	p := part{begin: begin, end: end, last: []ref{request}}
	if math.IsNaN(end) {
		p.end, p.endless = begin, true
	}
	l.add(p)
	l.previous = &request
}

// add adds a part.
func (l *timeline) add(p part) {
	l.added++
	p.order = l.added
	heap.Push(&l.running, p)
}

// reach moves the parts that had ended at t.
func (l *timeline) reach(t float64) {
	for len(l.running) > 0 && l.running[0].end <= t+l.slack {
		p := heap.Pop(&l.running).(part)
		l.ended = append(l.ended, p)
		if !p.agent && (!l.begun || p.order > l.latest.order) {
			l.latest, l.begun = p, true
		}
	}
}

// caller returns the request that called a sub-agent at t: of those that had ended,
// the one that began last.
func (l *timeline) caller(t float64) []part {
	if l.reach(t); !l.begun {
		return nil
	}
	return []part{l.latest}
}

// until returns the parts that a request that began at t waited for, in the order in
// which they were added. The result is valid until the next call of a method.
func (l *timeline) until(t float64) []part {
	l.reach(t)
	l.ended = slices.DeleteFunc(l.ended, func(p part) bool {
		return l.begun && p.order < l.latest.order && p.end <= l.latest.begin+l.slack
	})
	slices.SortFunc(l.ended, func(a, b part) int { return cmp.Compare(a.order, b.order) })
	return l.ended
}

// agentSince returns everything that was added since begin as one part: a sub-agent.
func (l *timeline) agentSince(begin float64) part {
	p := part{begin: begin, end: begin, agent: true, endless: true}
	all := *l
	all.running, all.ended = slices.Clone(l.running), slices.Clone(l.ended)
	for _, q := range all.until(math.Inf(1)) {
		if q.end < begin {
			continue
		}
		if q.end >= p.end {
			p.end, p.endless = q.end, q.endless
		}
		p.last = append(p.last, q.last...)
	}
	return p
}

// byEnd is a heap of parts by end.
type byEnd []part

func (h byEnd) Len() int { return len(h) }
func (h byEnd) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(h[i].end, h[k].end), cmp.Compare(h[i].order, h[k].order)) < 0
}
func (h byEnd) Swap(i, k int) { h[i], h[k] = h[k], h[i] }
func (h *byEnd) Push(x any)   { *h = append(*h, x.(part)) }
func (h *byEnd) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last] = part{}
	*h = (*h)[:last]
	return p
}

// maxLinks bounds the entries in after of a trace.
const maxLinks = 1 << 24

// links holds the sessions of an indexed trace and what their requests wait for.
type links struct {
	notes    *notes
	sessions []string         // their names
	numbers  map[uint64]int32 // of sessions, by the hash of their name: see sessionOf
	named    []bool           // sessions whose requests need a request_id
	after    []ref
}

// start is when a request starts: at a time, or after other requests.
type start struct {
	ms     float64 // the arrival, or the delay after the last of these ends
	from   uint32  // in links.after
	waits  int32   // number of requests, or previousTurn
	delays bool    // ms is a delay
	kind   delayCause
}

// previousTurn is the number of waits of a request without after: it waits for the
// previous turn of its session, if any.
const previousTurn = -1

// delayCause is a trace.DelayKind in one byte.
type delayCause uint8

const (
	unknownCause delayCause = iota
	thinking
	toolRunning
)

var delayKinds = [...]trace.DelayKind{"", trace.Think, trace.Tool}

// roundToMicrosecond removes the rounding errors of milliseconds since 1970.
func roundToMicrosecond(ms float64) float64 { return math.Round(ms*1000) / 1000 }

func (x *links) newSession(name string) int32 {
	x.sessions, x.named = append(x.sessions, name), append(x.named, false)
	return int32(len(x.sessions) - 1)
}

// sessionOf returns the number of the session with a name, and whether it is not new.
func (x *links) sessionOf(name string) (number int32, known bool) {
	hash := xxhash.Sum64String(name)
	if number, known = x.numbers[hash]; known {
		return number, true
	}
	if x.numbers == nil {
		x.numbers = map[uint64]int32{}
	}
	number = x.newSession(name)
	x.numbers[hash] = number
	return number, false
}

// start returns when a request recorded at t starts if it waits for parts. previous
// is the row before it in its session; nil if it is the first.
func (x *links) start(t float64, parts []part, previous *ref) (s start, err error) {
	s = start{ms: t, waits: previousTurn}
	var last part
	count := 0
	for i, p := range parts {
		if i == 0 || p.end >= last.end {
			last = p
		}
		count += len(p.last)
	}
	if count > 0 && !last.endless {
		s.ms, s.delays = roundToMicrosecond(max(0, t-last.end)), true
	}
	x.note(parts, previous)
	if previous == nil && count == 0 || previous != nil && count == 1 && last.last[0] == *previous {
		return s, nil
	}
	if len(x.after)+count > maxLinks {
		return s, fmt.Errorf("the lists in after would have more than %d entries in total", maxLinks)
	}
	s.from, s.waits = uint32(len(x.after)), int32(count)
	for _, p := range parts {
		for _, r := range p.last {
			x.after, x.named[r.session] = append(x.after, r), true
		}
	}
	return s, nil
}

// note counts what was inferred from recorded times.
func (x *links) note(parts []part, previous *ref) {
	switch {
	case previous == nil && len(parts) > 0:
		x.notes.count("sub-agents that begin after the request that called them")
	case previous != nil && !slices.ContainsFunc(parts, func(p part) bool { return p.last[0] == *previous }):
		x.notes.count("requests that began before the previous one ended, and do not wait for it")
	}
	if slices.ContainsFunc(parts, func(p part) bool { return p.agent }) {
		x.notes.count("turns that wait for sub-agents that had ended when they began")
	}
}

// set sets times and ids of a row.
func (x *links) set(r *trace.Request, s start, self ref) {
	switch {
	case s.delays:
		r.Delay, r.DelayKind = trace.Some(s.ms), delayKinds[s.kind]
	default:
		r.Timestamp = trace.Some(s.ms)
	}
	if self.session >= 0 && x.named[self.session] {
		r.ID = x.id(self)
	}
	if s.waits == previousTurn {
		return
	}
	r.After = make([]string, s.waits)
	for i := range r.After {
		r.After[i] = x.id(x.after[int(s.from)+i])
	}
}

func (x *links) id(r ref) string {
	return x.sessions[r.session] + ":" + strconv.Itoa(int(r.number))
}
