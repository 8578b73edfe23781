package replay

import (
	"fmt"
	"iter"
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
//   - a turn is due its delay after the end of the turn before, but not earlier
//     than at once; sessions with a failed turn stay skipped.
//
// A ResumeState can be used once.
type ResumeState struct {
	Clock    time.Duration // where the run's clock continues: the end of the last recorded request
	Rows     int           // number of recorded rows
	done     RowSet
	lastRow  int // the last recorded row that was due at its arrival
	sessions map[string]*session
}

// ReadResumeState reads the records of an interrupted run of the trace. A
// duplicate row or one that is not in the trace is an error.
func ReadResumeState(records iter.Seq2[Record, error], plan Plan) (*ResumeState, error) {
	p := &ResumeState{lastRow: -1, sessions: map[string]*session{}}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if rec.Row < 0 || rec.Row >= plan.Rows || p.done.Has(rec.Row) {
			return nil, fmt.Errorf("the records are not of this trace: it has %[2]d rows, and row %[1]d is not among them or is recorded twice", rec.Row+1, plan.Rows)
		}
		p.Rows++
		p.done.Add(rec.Row)
		later := rec.SessionID != "" && !plan.Sessions.first.Has(rec.Row)
		if arrives(rec.Request, later) {
			p.lastRow = max(p.lastRow, rec.Row)
		}
		p.Clock = max(p.Clock, rec.Done)
		if id := rec.SessionID; id != "" && !plan.Sessions.last.Has(rec.Row) {
			s := p.sessions[id]
			if s == nil {
				s = &session{}
				p.sessions[id] = s
			}
			s.ended = max(s.ended, rec.Done)
			s.failed = s.failed || rec.Class != OK
		} else {
			delete(p.sessions, id)
		}
	}
	return p, nil
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

// arrives reports whether a row is due at its arrival, unlike a later turn with a
// delay.
func arrives(r trace.Request, later bool) bool {
	return r.Timestamp.Set && !(later && r.Delay.Set)
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
	if s.ResumeState != nil && !s.known && j.row > s.lastRow && arrives(j.req, j.turn) {
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
