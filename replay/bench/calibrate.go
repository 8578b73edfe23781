package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// CalibrateConfig configures [Calibrate]. Only Start is required.
type CalibrateConfig struct {
	// Start starts a simulated endpoint without load limits in a separate
	// process on this machine; see [StartEndpoint].
	Start   func(ctx context.Context, p Pace) (Endpoint, error)
	Ladders []Ladder    // the loads; nil is [Ladders]
	Each    func(Point) // if not nil, called after each load
	Version string      // of the client
}

// Pace configures when a simulated endpoint sends tokens.
type Pace struct {
	// TPOT is the time between two tokens of a stream.
	TPOT time.Duration
	// LockStep sends the tokens of all streams at once, as a batching engine
	// does. Otherwise the phases of the streams are spread evenly.
	LockStep bool
}

// Calibration holds the measured limits of a client on a machine.
type Calibration struct {
	Version string        `json:"version"`
	Taken   time.Time     `json:"taken"`
	Machine Machine       `json:"machine"`
	Stamps  replay.Stamps `json:"stamps"`   // who timestamps arrivals
	LimitMS float64       `json:"limit_ms"` // limit of the p99 errors
	Range   runfile.Range `json:"range"`
	Points  []Point       `json:"loads"` // in the order in which they were driven
}

// Limit is the largest p99 error, and for [Sends] the largest p99 client lag,
// of a load within a client's range.
const Limit = time.Millisecond

// Calibrate measures the client under growing loads. Each ladder ends at the
// first load that exceeds the client's range. An error means that the
// calibration failed.
func Calibrate(ctx context.Context, cfg CalibrateConfig) (*Calibration, error) {
	if err := checkSystem(); err != nil {
		return nil, err
	}
	if cfg.Ladders == nil {
		cfg.Ladders = Ladders()
	}
	c := &Calibration{Version: cfg.Version, Taken: time.Now().UTC().Truncate(time.Second), Machine: ThisMachine(), LimitMS: ms(Limit)}
	began := time.Now()
	for i, ladder := range cfg.Ladders {
		again := func(load Load) bool { return mayRepeat(load, cfg.Ladders[i+1:], time.Since(began)) }
		points, err := climb(ladder.within(openFilesLimit()), again, func(load Load) (Point, error) {
			p, err := cfg.drive(ctx, load)
			switch {
			case ctx.Err() != nil:
				return p, ctx.Err()
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

// busy is the number of CPU cores that other processes may use before a
// disturbance is blamed on them.
const busy = 0.1

const (
	// longest is the time budget of a calibration.
	longest = 48 * time.Second
	// around is the time to start and stop the endpoint of a load.
	around = 700 * time.Millisecond
)

// mayRepeat reports whether a load that took this long can be repeated with
// time left for the remaining ladders.
func mayRepeat(load Load, behind []Ladder, took time.Duration) bool {
	took += load.lasts() + around
	for _, ladder := range behind {
		for _, l := range ladder {
			took += l.lasts() + around
		}
	}
	return took <= longest
}

// climb drives the loads of a ladder up to the first that exceeds the range. If
// other processes kept the machine busy and there is time, that load is
// repeated and the second result is used.
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

// within truncates the ladder before the first load that needs more open files
// than the limit; 0 means no limit.
func (l Ladder) within(openFiles int) Ladder {
	for i, load := range l {
		if openFiles > 0 && load.Requests+2*otherFiles > openFiles {
			return l[:i]
		}
	}
	return l
}

// Machine identifies the machine that a calibration is valid for.
type Machine struct {
	runfile.Host
	CPU string `json:"cpu"` // model name; "" if unknown
}

// ThisMachine returns the machine that this process runs on.
func ThisMachine() Machine {
	return Machine{
		Host: runfile.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()},
		CPU:  cpuModel(),
	}
}
