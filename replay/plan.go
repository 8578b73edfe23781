package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	// nanoseconds ("-" for none), session, and what else it waits for.
	Schedule string
	Graph    *trace.Graph // which rows wait for which
}

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

// ErrEmpty reports a trace without rows.
var ErrEmpty = errors.New("the trace has no requests")

// MaxWait is the latest arrival after the start of a replay, and the longest delay
// of a turn.
const MaxWait = 366 * 24 * time.Hour

// Scan plans the replay of a trace. It fails if the stream does, if the trace is
// empty, if a row has no arrival or delay or one beyond [MaxWait], or with a
// [*trace.GraphError]. It does not
// check the order of arrivals: see [trace.InOrder].
func Scan(reqs trace.Requests) (Plan, error) {
	var p Plan
	var first, last trace.Opt[float64]
	digest := sha256.New()
	var graph trace.GraphBuilder
	defer graph.Close()
	for r, err := range reqs {
		if err != nil {
			return Plan{}, err
		}
		graph.Add(r, 0)
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
		case r.SessionID == "" && len(r.After) == 0:
			return Plan{}, fmt.Errorf("row %d has neither a timestamp nor a delay: give the trace arrivals first", p.Rows)
		}
		if r.OutputLength == 0 {
			p.ZeroOutput++
		}
		fmt.Fprintf(digest, "%s %s %q", nanoseconds(r.Timestamp), nanoseconds(r.Delay), r.SessionID)
		if r.After != nil || r.ID != "" {
			fmt.Fprintf(digest, " %q %q", r.ID, r.After)
		}
		digest.Write([]byte("\n"))
	}
	if p.Rows == 0 {
		return Plan{}, ErrEmpty
	}
	p.DurationMS = last.Value - first.Value
	var err error
	if p.Graph, err = graph.Graph(); err != nil {
		return Plan{}, err
	}
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
