package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// CalibrateConfig says how to calibrate. Start and Dir must be given.
type CalibrateConfig struct {
	// Start starts a simulated endpoint in a process of its own, on this
	// machine, that sets no limit to what is driven.
	Start func(ctx context.Context, p Pace) (Endpoint, error)
	// Dir is an existing folder in which runs are recorded, as in a replay.
	// Each is removed when it is over.
	Dir string
	// Ladders are what is driven; nil is [Ladders].
	Ladders []Ladder
	// OpenFiles is how many files this process may have open; loads of more
	// streams are left out. 0 is no limit.
	OpenFiles int
	// Each, if not nil, is called after each load.
	Each func(Point)
	// Machine is where this is.
	Machine Machine
	Version string // of the client
}

// Pace is how a simulated endpoint has to answer.
type Pace struct {
	// TPOT is the time between two tokens of a stream.
	TPOT time.Duration
	// LockStep has all streams get their tokens at once, as a batching engine
	// does. Otherwise each has a phase of its own, and these are spread evenly.
	LockStep bool
}

// Endpoint is a simulated endpoint that runs.
type Endpoint struct {
	URL string
	PID int // of its process
	// Close ends it, and returns when it has ended.
	Close func() error
}

// Calibration is what a client was found to do on a machine.
type Calibration struct {
	Version string        `json:"version"`
	Taken   time.Time     `json:"taken"`
	Machine Machine       `json:"machine"`
	Stamps  replay.Stamps `json:"stamps"`   // who took the instants of arrival
	LimitMS float64       `json:"limit_ms"` // of the errors at p99 within the range
	Range   runfile.Range `json:"range"`
	Points  []Point       `json:"loads"` // in the order in which they were driven
}

// Limit is the error at p99, and the client lag where requests are what is
// counted, up to which a load is within the range of a client.
const Limit = time.Millisecond

// Calibrate drives growing loads. A ladder is left at the first load that is
// too much. The error is a failure to calibrate, never what was found.
func Calibrate(ctx context.Context, cfg CalibrateConfig) (*Calibration, error) {
	if err := checkSystem(); err != nil {
		return nil, err
	}
	if cfg.Ladders == nil {
		cfg.Ladders = Ladders()
	}
	c := &Calibration{Version: cfg.Version, Taken: time.Now().UTC().Truncate(time.Second), Machine: cfg.Machine, LimitMS: ms(Limit)}
	began := time.Now()
	for i, ladder := range cfg.Ladders {
		again := func(load Load) bool { return mayRepeat(load, cfg.Ladders[i+1:], time.Since(began)) }
		points, err := climb(ladder.within(cfg.OpenFiles), again, func(load Load) (Point, error) {
			p, err := cfg.drive(ctx, load)
			switch {
			case ctx.Err() != nil:
				return p, errors.New("interrupted")
			case err != nil:
				return p, fmt.Errorf("driving %v: %w", load, err)
			}
			if cfg.Each != nil {
				cfg.Each(p)
			}
			return p, nil
		})
		if err != nil {
			return nil, err
		}
		c.Points = append(c.Points, points...)
	}
	if len(c.Points) > 0 {
		c.Stamps = c.Points[0].stamps
	}
	c.Range = rangeOf(c.Points)
	return c, nil
}

// busy is how many processors the rest of the machine may take without a
// disturbance being put down to it.
const busy = 0.1

// longest is how long a calibration should take at most, where nothing is late,
// and around what a load takes besides its own time: its endpoint starts and ends.
const (
	longest = 48 * time.Second
	around  = 700 * time.Millisecond
)

// mayRepeat reports whether a load can be driven once more, now that a
// calibration has taken so long, and the ladders behind it still end in time.
func mayRepeat(load Load, behind []Ladder, took time.Duration) bool {
	took += load.lasts() + around
	for _, ladder := range behind {
		for _, l := range ladder {
			took += l.lasts() + around
		}
	}
	return took <= longest
}

// climb drives the loads of a ladder up to the first that is too much. Where
// the machine had something else to do, that one is driven a second time, which
// counts, if there is time for it.
func climb(ladder Ladder, again func(Load) bool, drive func(Load) (Point, error)) (points []Point, err error) {
	for _, load := range ladder {
		p, err := drive(load)
		if err == nil && p.TooMuch != "" && p.Others >= busy && again(load) {
			p, err = drive(load)
		}
		if err != nil {
			return nil, err
		}
		points = append(points, p)
		if p.TooMuch != "" {
			break
		}
	}
	return points, nil
}

// within is the ladder up to where this process may not have enough files open;
// 0 is no limit.
func (l Ladder) within(openFiles int) Ladder {
	for i, load := range l {
		if openFiles > 0 && load.Requests+otherFiles > openFiles {
			return l[:i]
		}
	}
	return l
}

// otherFiles are the files that are open besides the connections.
const otherFiles = 256

// Machine is what a calibration holds for.
type Machine struct {
	runfile.Host
	CPU string `json:"cpu"` // its model, "" where it is not known
}

// ThisMachine is the one that this process runs on.
func ThisMachine() Machine {
	return Machine{
		Host: runfile.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()},
		CPU:  cpuModel(),
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
