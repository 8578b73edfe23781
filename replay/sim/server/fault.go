package server

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Fault is what goes wrong, on purpose, with a share of the answers.
type Fault struct {
	Kind  FaultKind
	Share float64 // of requests: above 0, up to 1
	// Time is how long a delay or a stall takes, 0 being for good, how long a
	// drip pauses, and what Retry-After says.
	Time time.Duration
	// Count is how many events are merged.
	Count int
}

// FaultKind is what goes wrong.
type FaultKind string

// The kinds of faults. Those within the stream begin at a token that is drawn,
// the first one excepted. Where an answer is not streamed, a stall, a reset, a
// truncation and garbage happen to the answer as it is, and the three that
// concern events do not happen.
const (
	Refuse   FaultKind = "refuse"   // the connection is reset without an answer
	TooMany  FaultKind = "429"      // status 429 with Retry-After
	Failure  FaultKind = "500"      // status 500
	Delay    FaultKind = "delay"    // nothing happens for a time before the request is taken
	Stall    FaultKind = "stall"    // the stream pauses
	Reset    FaultKind = "reset"    // the connection is reset
	Truncate FaultKind = "truncate" // the connection is closed as if all was well
	Garbage  FaultKind = "garbage"  // an event that is none is among the others
	Drip     FaultKind = "drip"     // events come a few bytes at a time
	Merge    FaultKind = "merge"    // events come several at once
	Split    FaultKind = "split"    // events come in pieces, cut at any byte
)

// defaultFaults are what each kind is where no more is said.
var defaultFaults = []Fault{
	{Kind: Refuse}, {Kind: TooMany, Time: time.Second}, {Kind: Failure}, {Kind: Delay, Time: time.Second},
	{Kind: Stall}, {Kind: Reset}, {Kind: Truncate}, {Kind: Garbage}, {Kind: Drip, Time: 20 * time.Millisecond},
	{Kind: Merge, Count: 4}, {Kind: Split},
}

// FaultKinds are all kinds of faults.
func FaultKinds() []FaultKind {
	var kinds []FaultKind
	for _, f := range defaultFaults {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

// ParseFault reads KIND[:SHARE[:AMOUNT]]: the share of requests from 0 to 1,
// left out 1, and the kind's time or number of events, as in "reset:0.01" and
// "stall:1:2s".
func ParseFault(text string) (Fault, error) {
	kind, rest, hasShare := strings.Cut(text, ":")
	f, known := Fault{}, false
	for _, d := range defaultFaults {
		if string(d.Kind) == strings.ToLower(kind) {
			f, known = d, true
		}
	}
	if !known {
		return Fault{}, fmt.Errorf("fault %q is not one of %s", shortened(kind), joined(FaultKinds()))
	}
	share, amount, hasAmount := strings.Cut(rest, ":")
	f.Share = 1
	if hasShare {
		var err error
		if f.Share, err = strconv.ParseFloat(share, 64); err != nil || !(f.Share > 0 && f.Share <= 1) {
			return Fault{}, fmt.Errorf("fault %s: its share of requests is not above 0 and up to 1: %q", f.Kind, shortened(share))
		}
	}
	if hasAmount {
		if err := f.setAmount(amount); err != nil {
			return Fault{}, err
		}
	}
	return f, nil
}

func (f *Fault) setAmount(text string) error {
	const longest, most = time.Hour, 10_000
	var err error
	switch f.Kind {
	case TooMany, Delay, Stall, Drip:
		if f.Time, err = time.ParseDuration(text); err != nil || f.Time <= 0 || f.Time > longest {
			return fmt.Errorf("fault %s: its time is not above 0 and up to %v: %q", f.Kind, longest, shortened(text))
		}
	case Merge:
		if f.Count, err = strconv.Atoi(text); err != nil || f.Count < 2 || f.Count > most {
			return fmt.Errorf("fault %s: its number of events is not from 2 to %d: %q", f.Kind, most, shortened(text))
		}
	default:
		return fmt.Errorf("fault %s takes no amount: %q", f.Kind, shortened(text))
	}
	return nil
}

// forGood is how long a stall is that does not end.
const forGood = 24 * time.Hour

// chance is what is random about the request of a number: the same for the
// same seed, whatever happens to other requests.
func chance(seed, number uint64) *rand.Rand {
	const aspect = 0x6661756c74 // a number of its own among the seeds
	return rand.New(rand.NewPCG(seed^aspect, number))
}

// drawn is the first of the faults whose turn it is, or none.
func drawn(faults []Fault, r *rand.Rand) Fault {
	for _, f := range faults {
		if r.Float64() < f.Share {
			return f
		}
	}
	return Fault{}
}

// inStream says whether the fault is a matter of the stream.
func (f Fault) inStream() bool {
	switch f.Kind {
	case Stall, Reset, Truncate, Garbage, Drip, Merge, Split:
		return true
	}
	return false
}

func joined[T ~string](names []T) string {
	var all []string
	for _, name := range names {
		all = append(all, string(name))
	}
	return strings.Join(all, ", ")
}
