package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"moontide/trace"
)

// Plan summarizes a trace before anything is sent.
type Plan struct {
	Rows       int
	DurationMS float64 // from the first arrival to the last
	Turns      int     // rows due relative to an earlier turn, not at an arrival
	ZeroOutput int     // rows with an output length of 0; they get one token
	// Schedule is the SHA-256 of one line per row: arrival and delay in
	// nanoseconds ("-" for none) and session.
	Schedule string
	Sessions Sessions
}

// Sessions holds the first and last rows of all sessions, so that a run can forget
// finished sessions. It takes two bits per row.
type Sessions struct{ first, last RowSet }

// Last reports whether a row is the last of its session.
func (s *Sessions) Last(row int) bool { return s.last.Has(row) }

// RowSet is a set of row numbers, stored as a bit set.
type RowSet []uint64

// Has reports whether the set contains a row.
func (s RowSet) Has(row int) bool { return row/64 < len(s) && s[row/64]>>(row%64)&1 == 1 }

// Add adds a row to the set.
func (s *RowSet) Add(row int) {
	for row/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[row/64] |= 1 << (row % 64)
}

// sessionScan finds the first and last rows of sessions by the hashes of their
// ids. A collision only delays the preparation of requests.
type sessionScan struct {
	seed     maphash.Seed
	found    Sessions
	lastRows map[uint64]int
}

func (s *sessionScan) add(session string, row int) {
	if session == "" {
		return
	}
	hash := maphash.String(s.seed, session)
	if _, later := s.lastRows[hash]; !later {
		s.found.first.Add(row)
	}
	s.lastRows[hash] = row
}

func (s *sessionScan) end() Sessions {
	for _, row := range s.lastRows {
		s.found.last.Add(row)
	}
	return s.found
}

// ErrEmpty reports a trace without rows.
var ErrEmpty = errors.New("the trace has no requests")

// MaxWait is the latest arrival after the start of a replay, and the longest delay
// of a turn.
const MaxWait = 366 * 24 * time.Hour

// Scan plans the replay of a trace. It fails if the stream does, if the trace is
// empty, or if a row has no arrival or delay or one beyond [MaxWait]. It does not
// check the order of arrivals: see [trace.InOrder].
func Scan(reqs trace.Requests) (Plan, error) {
	var p Plan
	var first, last trace.Opt[float64]
	digest := sha256.New()
	sessions := sessionScan{seed: maphash.MakeSeed(), lastRows: map[uint64]int{}}
	for r, err := range reqs {
		if err != nil {
			return Plan{}, err
		}
		sessions.add(r.SessionID, p.Rows)
		p.Rows++
		if err := inTime(r); err != nil {
			return Plan{}, fmt.Errorf("row %d %w", p.Rows, err)
		}
		switch {
		case r.Timestamp.Set:
			if last = r.Timestamp; !first.Set {
				first = last
			}
		case r.Delay.Set:
			p.Turns++
		case r.SessionID == "":
			return Plan{}, fmt.Errorf("row %d has neither a timestamp nor a delay: give the trace arrivals first", p.Rows)
		}
		if r.OutputLength == 0 {
			p.ZeroOutput++
		}
		fmt.Fprintf(digest, "%s %s %q\n", nanoseconds(r.Timestamp), nanoseconds(r.Delay), r.SessionID)
	}
	if p.Rows == 0 {
		return Plan{}, ErrEmpty
	}
	p.DurationMS = last.Value - first.Value
	p.Sessions = sessions.end()
	p.Schedule = hex.EncodeToString(digest.Sum(nil))
	return p, nil
}

// inTime returns an error if a row is due later than MaxWait.
func inTime(r trace.Request) error {
	const most = float64(MaxWait / time.Millisecond)
	switch {
	case r.Timestamp.Set && !(r.Timestamp.Value <= most):
		return fmt.Errorf("would be sent %.3g days after the start: a replay waits for %v days at most", r.Timestamp.Value/msPerDay, most/msPerDay)
	case r.Delay.Set && !(r.Delay.Value <= most):
		return fmt.Errorf("would be sent %.3g days after the turn before: a replay waits for %v days at most", r.Delay.Value/msPerDay, most/msPerDay)
	}
	return nil
}

const msPerDay = 24 * 60 * 60 * 1000.0

func nanoseconds(ms trace.Opt[float64]) string {
	if !ms.Set {
		return "-"
	}
	return fmt.Sprint(Milliseconds(ms.Value).Nanoseconds())
}
