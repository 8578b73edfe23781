package server

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is an error simulated in a share of the answers.
type Fault struct {
	Kind  FaultKind
	Share float64 // of requests: above 0, up to 1
	// Time is the length of a delay or stall (0: forever), the pause between
	// the pieces of a drip, or the value of Retry-After.
	Time  time.Duration
	Count int // number of merged events
}

// FaultKind is a kind of fault. Faults in a stream begin at a random token
// after the first. In a non-streaming response, stall, reset, truncate and garbage
// affect the whole answer; error is status 500; drip, merge and split have no effect.
type FaultKind string

const (
	Refuse   FaultKind = "refuse"   // the connection is reset without an answer
	TooMany  FaultKind = "429"      // status 429 with Retry-After
	Failure  FaultKind = "500"      // status 500
	Delay    FaultKind = "delay"    // the request is accepted late
	Stall    FaultKind = "stall"    // the stream pauses
	Reset    FaultKind = "reset"    // the connection is reset
	Truncate FaultKind = "truncate" // the connection is closed in the middle of the stream
	Broken   FaultKind = "error"    // the stream ends with an error event
	Garbage  FaultKind = "garbage"  // a malformed event is inserted
	Drip     FaultKind = "drip"     // events arrive a few bytes at a time
	Merge    FaultKind = "merge"    // several events arrive at once
	Split    FaultKind = "split"    // events arrive in two or more pieces
)

// defaultFaults lists all kinds with their defaults.
var defaultFaults = []Fault{
	{Kind: Refuse}, {Kind: TooMany, Time: time.Second}, {Kind: Failure}, {Kind: Delay, Time: time.Second},
	{Kind: Stall}, {Kind: Reset}, {Kind: Truncate}, {Kind: Broken}, {Kind: Garbage}, {Kind: Drip, Time: 20 * time.Millisecond},
	{Kind: Merge, Count: 4}, {Kind: Split},
}

// FaultKinds returns the names of all kinds.
func FaultKinds() []string {
	var kinds []string
	for _, f := range defaultFaults {
		kinds = append(kinds, string(f.Kind))
	}
	return kinds
}

// ParseFault parses KIND[:SHARE[:AMOUNT]], such as "reset:0.01" or "stall:1:2s":
// the share of requests (above 0, up to 1; default 1) and the time or number of
// events, if the kind takes one.
func ParseFault(text string) (Fault, error) {
	kind, rest, hasShare := strings.Cut(text, ":")
	known := slices.IndexFunc(defaultFaults, func(d Fault) bool { return string(d.Kind) == strings.ToLower(kind) })
	if known < 0 {
		return Fault{}, fmt.Errorf("fault %q is not one of %s", shortened(kind), strings.Join(FaultKinds(), ", "))
	}
	f := defaultFaults[known]
	f.Share = 1
	share, amount, hasAmount := strings.Cut(rest, ":")
	if hasShare {
		var err error
		if f.Share, err = strconv.ParseFloat(share, 64); err != nil || !(f.Share > 0 && f.Share <= 1) {
			return Fault{}, fmt.Errorf("fault %s: share of requests must be above 0 and at most 1, got %q", f.Kind, shortened(share))
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
			return fmt.Errorf("fault %s: time must be above 0 and at most %v, got %q", f.Kind, longest, shortened(text))
		}
	case Merge:
		if f.Count, err = strconv.Atoi(text); err != nil || f.Count < 2 || f.Count > most {
			return fmt.Errorf("fault %s: number of events must be from 2 to %d, got %q", f.Kind, most, shortened(text))
		}
	default:
		return fmt.Errorf("fault %s takes no amount: %q", f.Kind, shortened(text))
	}
	return nil
}

// forever is the length of a stall without a time limit.
const forever = 24 * time.Hour

// faultRandom returns the random source for the faults of the n-th request. It
// is independent of other requests.
func faultRandom(seed, n uint64) *rand.Rand {
	const aspect = 0x6661756c74 // separates it from other uses of the seed
	return rand.New(rand.NewPCG(seed^aspect, n))
}

// drawFault returns the first fault drawn by r, or none.
func drawFault(faults []Fault, r *rand.Rand) Fault {
	for _, f := range faults {
		if r.Float64() < f.Share {
			return f
		}
	}
	return Fault{}
}

// inStream reports whether the fault happens within a stream.
func (f Fault) inStream() bool {
	return slices.Contains([]FaultKind{Stall, Reset, Truncate, Broken, Garbage, Drip, Merge, Split}, f.Kind)
}
