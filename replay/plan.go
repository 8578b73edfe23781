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

// Plan is what a trace will ask for, known before anything is sent.
type Plan struct {
	Rows       int
	DurationMS float64 // from the first arrival to the last
	Turns      int     // rows that follow an earlier turn instead of a clock
	ZeroOutput int     // rows that ask for no output token, and get one
	// Schedule is the SHA-256 of one line for each row: its arrival and its
	// delay in nanoseconds ("-" where it has none) and its session.
	Schedule string
	Sessions Sessions
}

// Sessions says of each row of a trace whether it is the first and whether it
// is the last of its session. It takes two bits for a row, so that a run need
// not remember sessions that are over.
type Sessions struct{ first, last RowSet }

// RowSet is a set of row numbers, one bit per row up to the largest.
type RowSet []uint64

// Has reports whether the set has a row.
func (s RowSet) Has(row int) bool { return row/64 < len(s) && s[row/64]>>(row%64)&1 == 1 }

// Add puts a row into the set.
func (s *RowSet) Add(row int) {
	for row/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[row/64] |= 1 << (row % 64)
}

// sessionScan finds the first and the last rows of sessions. It knows sessions by
// a hash: two that share one are taken for one, which costs their requests
// nothing but being prepared late.
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

// ErrEmpty says that a trace has no row to replay.
var ErrEmpty = errors.New("the trace has no requests")

// MaxWait is the longest that an arrival may be after the start of a replay, and
// a turn after the one before.
const MaxWait = 366 * 24 * time.Hour

// Scan reads a trace as it is about to be replayed. The error is the stream's,
// or says why the trace cannot be replayed: it is empty, or a row has no time or
// one beyond [MaxWait].
// That rows are in order of arrival is for [trace.InOrder] to check.
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

// inTime returns why a row comes too late to be waited for, if it does.
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
