package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

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
}

// ErrEmpty says that a trace has no row to replay.
var ErrEmpty = errors.New("the trace has no requests")

// Scan reads a trace as it is about to be replayed. The error is the stream's,
// or says why the trace cannot be replayed: it is empty or a row has no time.
// That rows are in order of arrival is for [trace.InOrder] to check.
func Scan(reqs trace.Requests) (Plan, error) {
	var p Plan
	var first, last trace.Opt[float64]
	digest := sha256.New()
	for r, err := range reqs {
		if err != nil {
			return Plan{}, err
		}
		p.Rows++
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
	p.Schedule = hex.EncodeToString(digest.Sum(nil))
	return p, nil
}

func nanoseconds(ms trace.Opt[float64]) string {
	if !ms.Set {
		return "-"
	}
	return fmt.Sprint(msToDuration(ms.Value).Nanoseconds())
}
