package replay

import (
	"fmt"
	"iter"
	"time"

	"moontide/trace"
)

// ResumeState is what the record of an earlier part of a run says: a [Runner] that is
// given one goes on behind it. The run's clock stood still in between, so that
// no figure counts the pause:
//
//   - rows in the record are over and are not sent again;
//   - the first row behind all of these is due at once, and the others keep
//     their distance from it;
//   - rows before it that are not in the record were in flight, or waited; they
//     are due at once;
//   - a turn is due its delay after the end of the turn before, on the run's
//     clock, and at once at the earliest; sessions of which a turn failed stay
//     left out.
//
// A ResumeState is used once.
type ResumeState struct {
	Clock    time.Duration // where the run's clock goes on: the last end in the record
	Rows     int           // rows in the record
	done     RowSet
	lastRow  int // the last row in the record that came at its arrival
	sessions map[string]*session
}

// ReadResumeState reads the record of a run whose trace has these sessions. A row that
// is in the record twice, or that the trace does not have, is an error: the
// record is not of such a run.
func ReadResumeState(records iter.Seq2[Record, error], plan Plan) (*ResumeState, error) {
	p := &ResumeState{lastRow: -1, sessions: map[string]*session{}}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if rec.Row < 0 || rec.Row >= plan.Rows || p.done.Has(rec.Row) {
			return nil, fmt.Errorf("the record is not of this trace: row %d of %d is in it, or is in it twice", rec.Row+1, plan.Rows)
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

// has reports whether a row is over.
func (p *ResumeState) has(row int) bool { return p != nil && p.done.Has(row) }

// clock is where the run's clock begins.
func (p *ResumeState) clock() time.Duration {
	if p == nil {
		return 0
	}
	return p.Clock
}

// arrives reports whether a row comes at its arrival: a later turn that has a
// delay does not.
func arrives(r trace.Request, later bool) bool {
	return r.Timestamp.Set && !(later && r.Delay.Set)
}

// move is where the arrivals of a run that goes on lie on its clock.
type move struct {
	resumed bool
	from    time.Duration // nothing is due earlier
	behind  int           // rows up to this one had their time
	by      time.Duration // those behind it are moved
	known   bool          // by is, from the first of them
}

// see takes note of the next row of the trace.
func (m *move) see(j job) {
	if m.resumed && !m.known && j.row > m.behind && arrives(j.req, j.turn) {
		m.by, m.known = m.from-Milliseconds(j.req.Timestamp.Value), true
	}
}

// due is the arrival of a row on the run's clock.
func (m *move) due(j job) time.Duration {
	if m.resumed && j.row <= m.behind {
		return m.from
	}
	return max(m.from, m.by+Milliseconds(j.req.Timestamp.Value))
}
