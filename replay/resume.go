package replay

import (
	"fmt"
	"iter"
	"maps"
	"time"

	"moontide/trace"
)

// ResumeState is the state of an interrupted run, which a [Runner] continues. The
// run's clock does not advance in between, so no measurement includes the pause:
//
//   - recorded rows are not sent again;
//   - the first row after all of these is due at once, and later rows keep their
//     distance from it;
//   - earlier rows without a record were in flight or waited; they are due at
//     once;
//   - a row that waits for others is due its delay after the last of their ends, but
//     not earlier than at once; rows that wait for a failed one stay skipped.
//
// A ResumeState can be used once.
type ResumeState struct {
	Clock    time.Duration // where the run's clock continues: the end of the last recorded request
	Rows     int           // number of recorded rows
	done     RowSet
	lastRow  int              // the last recorded row that was due at its arrival
	next     Instant          // arrival of the first row after it, if Align has found it
	ends     map[int]end      // of recorded rows that others wait for
	sessions map[int]*session // in progress, by first row
	turns    map[string]int   // recorded rows of each SessionID, for SessionLimits
}

// ReadResumeState reads the records of an interrupted run of the trace. A
// duplicate row or one that is not in the trace is an error.
func ReadResumeState(records iter.Seq2[Record, error], plan Plan) (*ResumeState, error) {
	p := &ResumeState{lastRow: -1, ends: map[int]end{}, sessions: map[int]*session{}, turns: map[string]int{}}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if rec.Row < 0 || rec.Row >= plan.Rows || p.done.Has(rec.Row) {
			return nil, fmt.Errorf("the records are not of this trace: it has %[2]d rows, and row %[1]d is not among them or is recorded twice", rec.Row+1, plan.Rows)
		}
		p.add(&rec, plan.Graph)
	}
	p.forget(plan)
	return p, nil
}

// LastRow returns the last recorded row that was due at its arrival, -1 if there is none.
func (p *ResumeState) LastRow() int { return p.lastRow }

// Align makes the state that of a part of a run whose parts were interrupted together:
// clock and lastRow are the latest of all parts, and rows those of all.
func (p *ResumeState) Align(clock time.Duration, lastRow int, rows trace.Requests, graph *trace.Graph) error {
	p.Clock, p.lastRow = clock, lastRow
	row := -1
	for r, err := range rows {
		if err != nil {
			return err
		}
		if row++; row > lastRow && arrives(r, len(graph.Before(row)) > 0) {
			p.next = trace.Some(Milliseconds(r.Timestamp.Value))
			break
		}
	}
	return nil
}

// add adds a recorded row.
func (p *ResumeState) add(rec *Record, graph *trace.Graph) {
	p.Rows++
	p.done.Add(rec.Row)
	p.Clock = max(p.Clock, rec.Done)
	if arrives(rec.Request, len(graph.Before(rec.Row)) > 0) {
		p.lastRow = max(p.lastRow, rec.Row)
	}
	if graph.Waiting(rec.Row) > 0 {
		p.ends[rec.Row] = end{at: rec.Done, result: resultOf(rec.Class)}
	}
	if first := graph.First(rec.Row); graph.Size(first) > 1 {
		s := p.sessions[first]
		if s == nil {
			s = &session{}
			p.sessions[first] = s
		}
		s.ended++
		s.broken = s.broken || resultOf(rec.Class) != completed
	}
	if rec.SessionID != "" && !graph.Last(rec.Row) {
		p.turns[rec.SessionID]++
	}
}

// forget drops the sessions that have ended and the ends that no row waits for any
// more.
func (p *ResumeState) forget(plan Plan) {
	for row := range plan.Rows {
		if p.done.Has(row) {
			continue
		}
		for _, before := range plan.Graph.Before(row) {
			if e, ended := p.ends[int(before)]; ended {
				e.left++
				p.ends[int(before)] = e
			}
		}
	}
	maps.DeleteFunc(p.ends, func(_ int, e end) bool { return e.left == 0 })
	maps.DeleteFunc(p.sessions, func(first int, s *session) bool { return s.ended == plan.Graph.Size(first) })
}

// has reports whether a row is recorded.
func (p *ResumeState) has(row int) bool { return p != nil && p.done.Has(row) }

// clock returns the start of the run's clock.
func (p *ResumeState) clock() time.Duration {
	if p == nil {
		return 0
	}
	return p.Clock
}

// arrives reports whether a row is due at its arrival, unlike one that waits for
// others and has a delay.
func arrives(r trace.Request, waits bool) bool {
	return r.Timestamp.Set && !(waits && r.Delay.Set)
}

// resumeShift converts arrivals to the clock of a resumed run. The zero value
// changes nothing.
type resumeShift struct {
	*ResumeState               // nil for a new run
	by           time.Duration // shift of the rows after lastRow; those up to it are due at once
	known        bool          // by is known, from the first of these rows
}

// observe handles the next row of the trace.
func (s *resumeShift) observe(j job) {
	if s.ResumeState != nil && !s.known && s.next.Set {
		s.by, s.known = s.Clock-s.next.Value, true
	}
	if s.ResumeState != nil && !s.known && j.row > s.lastRow && arrives(j.req, len(j.before) > 0) {
		s.by, s.known = s.Clock-Milliseconds(j.req.Timestamp.Value), true
	}
}

// due returns the arrival of a row on the run's clock.
func (s *resumeShift) due(j job) time.Duration {
	if s.ResumeState != nil && j.row <= s.lastRow {
		return s.Clock
	}
	return max(s.clock(), s.by+Milliseconds(j.req.Timestamp.Value))
}
