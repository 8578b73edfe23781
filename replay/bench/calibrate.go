package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// CalibrateConfig configures [Calibrate]. Only Start is required.
type CalibrateConfig struct {
	// Start starts a simulated endpoint without load limits in a separate
	// process on this machine; see [StartEndpoint].
	Start   func(ctx context.Context, p Pace) (Endpoint, error)
	Loads   []Load      // nil is [Loads]
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

// Calibrate measures the client under a fixed list of loads. An error means that the
// calibration failed, or that no load is within the client's range.
func Calibrate(ctx context.Context, cfg CalibrateConfig) (*Calibration, error) {
	if err := checkSystem(); err != nil {
		return nil, err
	}
	if cfg.Loads == nil {
		cfg.Loads = Loads()
	}
	c := &Calibration{Version: cfg.Version, Taken: time.Now().UTC().Truncate(time.Second), Machine: ThisMachine(), LimitMS: ms(Limit)}
	for _, load := range cfg.Loads {
		if files := openFilesLimit(); files > 0 && load.Requests+2*otherFiles > files {
			continue
		}
		p, err := cfg.drive(ctx, load)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("driving %v: %w", load, err)
		}
		if cfg.Each != nil {
			cfg.Each(p)
		}
		c.Stamps, c.Points = p.stamps, append(c.Points, p)
	}
	if c.Range = rangeOf(c.Points); c.Range == (runfile.Range{}) {
		return nil, fmt.Errorf("no load has p99 errors below %v: quiet the machine and calibrate again", Limit)
	}
	return c, nil
}

// Load is one load of a calibration. Its requests arrive evenly.
type Load struct {
	Kind Kind `json:"kind"`
	// LockStep is as in [Pace].
	LockStep    bool    `json:"lock_step"`
	Requests    int     `json:"requests"`
	RequestRate float64 `json:"offered_requests_per_s"`
	ISL         int     `json:"isl"`
	OSL         int     `json:"osl"`
	TokenRate   float64 `json:"tokens_per_s_per_stream"`
}

// Kind is the part of the client that a load stresses.
type Kind string

const (
	// Streams loads keep all requests in flight for a while, during which errors
	// are measured.
	Streams Kind = "streams"
	// Sends loads start and end short requests continuously.
	Sends Kind = "sends"
)

const (
	// hold is the time that all streams of a load are in flight.
	hold = time.Second
	// before is the time of the first arrival; a process that has just started
	// is late.
	before = 100 * time.Millisecond
	// calibrationISL is the prompt length in tokens where it does not matter.
	calibrationISL = 16
)

// StreamLoad returns a load of n streams of tokenRate tokens per second each, all
// started within ramp.
func StreamLoad(n int, tokenRate float64, ramp time.Duration, lockStep bool) Load {
	return Load{
		Kind: Streams, LockStep: lockStep, Requests: n, RequestRate: float64(n) / ramp.Seconds(), ISL: calibrationISL,
		OSL:       max(3, int(math.Ceil(tokenRate*(ramp+hold).Seconds()))+1),
		TokenRate: tokenRate,
	}
}

// SendLoad returns a load of rate requests per second, with responses of 20 tokens
// in 0.4 s.
func SendLoad(rate float64, isl int, during time.Duration) Load {
	return Load{Kind: Sends, Requests: int(rate * during.Seconds()), RequestRate: rate, ISL: isl, OSL: 20, TokenRate: 50}
}

// Loads returns the loads of a calibration: growing numbers of streams and of tokens per
// second, each evenly phased and in lock-step, growing request rates, and long prompts.
// They take about 40 seconds.
func Loads() (loads []Load) {
	for _, lockStep := range []bool{false, true} {
		loads = append(loads,
			StreamLoad(100, 50, 100*time.Millisecond, lockStep),
			StreamLoad(1000, 50, 500*time.Millisecond, lockStep),
			StreamLoad(5000, 10, 800*time.Millisecond, lockStep),
			StreamLoad(10_800, 6.13, 1600*time.Millisecond, lockStep),
			StreamLoad(1000, 100, 500*time.Millisecond, lockStep))
	}
	return append(loads,
		SendLoad(250, calibrationISL, time.Second),
		SendLoad(1000, calibrationISL, 1500*time.Millisecond),
		SendLoad(2000, calibrationISL, time.Second),
		SendLoad(4000, calibrationISL, time.Second),
		SendLoad(100, 110_000, 1500*time.Millisecond))
}

// String describes the load.
func (l Load) String() string {
	if l.Kind == Sends {
		return fmt.Sprintf("%g requests/s of %d tokens", l.RequestRate, l.ISL)
	}
	how := "evenly phased"
	if l.LockStep {
		how = "in lock-step"
	}
	return fmt.Sprintf("%d streams of %g tokens/s %s", l.Requests, l.TokenRate, how)
}

// rows returns the load as a trace.
func (l Load) rows() trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for i := range l.Requests {
			at := trace.Some(ms(before) + 1e3*float64(i)/l.RequestRate)
			if !yield(trace.Request{Timestamp: at, InputLength: l.ISL, OutputLength: l.OSL}, nil) {
				return
			}
		}
	}
}

// Point is the measurement of one load.
type Point struct {
	Load
	Lost int `json:"lost"` // failed requests
	// Streams is the largest number of requests in flight.
	Streams int `json:"streams"`
	// EventRate is the events per second of all streams. SentRate is the
	// requests per second from the first sent to the last.
	EventRate float64 `json:"events_per_s"`
	SentRate  float64 `json:"requests_per_s"`
	// TTFT is the difference between the client's and the server's time of the
	// first token; ITL is that of the gaps between tokens.
	TTFT      Spread `json:"ttft_error"`
	ITL       Spread `json:"itl_error"`
	ClientLag Spread `json:"client_lag"`
	// TooMuch is why the load is outside the client's range, "" if it is inside.
	TooMuch string `json:"too_much,omitempty"`

	stamps replay.Stamps
}

// Spread summarizes a distribution in milliseconds.
type Spread struct {
	Count    int     `json:"count"`
	MedianMS float64 `json:"median_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

func spreadOf(values []float64) Spread {
	d := stats.Of(values)
	return Spread{d.Count, d.Quantile(0.5), d.Quantile(0.99), d.Max}
}

// drive replays one load against a new endpoint and compares the client's
// record with the server's write times.
func (cfg *CalibrateConfig) drive(ctx context.Context, load Load) (p Point, err error) {
	endpoint, err := cfg.Start(ctx, Pace{TPOT: time.Duration(float64(time.Second) / load.TokenRate), LockStep: load.LockStep})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, endpoint.Close()) }()
	truth := newTruth(load)
	var records []replay.Record
	most, inFlight := 0, func() replay.Status { return replay.Status{} }
	result, err := Run(ctx, Config{
		Trace:            Trace{Requests: load.rows(), Name: load.String()},
		keepFirstArrival: true,
		Client:           openai.Config{URL: endpoint.URL, Headers: []openai.Header{stampsHeader}, OnToken: truth.take},
		Observer: Observer{
			Start: func(s Started) { inFlight = s.Status },
			Record: func(rec replay.Record) {
				most = max(most, inFlight().InFlight+1) // with the one that has just ended
				records = append(records, rec)
			},
		},
	})
	if err != nil && !errors.Is(err, ErrNoSuccess) {
		return p, err
	}
	p = Point{Load: load, Lost: load.Requests - result.Run.Sent, Streams: min(most, load.Requests)}
	truth.compare(records, result.Run.Started, &p)
	p.TooMuch = judge(p)
	return p, nil
}

// minEventShare is the minimum share of the planned events for a load to be
// within range.
const minEventShare = 0.95

// judge returns why a load is outside the client's range, or "".
func judge(p Point) string {
	limit, planned := ms(Limit), float64(p.Requests)*p.TokenRate
	switch {
	case p.Lost > 0:
		return fmt.Sprintf("%d requests were lost", p.Lost)
	case p.Kind == Streams && p.Streams < p.Requests:
		return fmt.Sprintf("only %d streams were in flight at once", p.Streams)
	case p.Kind == Streams && p.EventRate < minEventShare*planned:
		return fmt.Sprintf("the endpoint wrote %.0f events/s of %.0f", p.EventRate, planned)
	case p.TTFT.P99MS > limit:
		return fmt.Sprintf("TTFT error p99 %.3f ms", p.TTFT.P99MS)
	case p.ITL.P99MS > limit:
		return fmt.Sprintf("ITL error p99 %.3f ms", p.ITL.P99MS)
	case p.Kind == Sends && p.ClientLag.P99MS > limit:
		return fmt.Sprintf("client lag p99 %.3f ms", p.ClientLag.P99MS)
	}
	return ""
}

// rangeOf returns the range covered by the points. Streams must be within the
// limits both evenly phased and in lock-step.
func rangeOf(points []Point) (r runfile.Range) {
	within := map[Load]bool{}
	for _, p := range points {
		within[p.Load] = p.TooMuch == ""
	}
	for _, p := range points {
		other := p.Load
		other.LockStep = !p.LockStep
		switch {
		case p.TooMuch != "":
		case p.Kind == Sends:
			r.RequestsPerSecond = max(r.RequestsPerSecond, p.SentRate)
		case within[other]:
			r.Streams = max(r.Streams, p.Streams)
			r.EventsPerSecond = max(r.EventsPerSecond, p.EventRate)
		}
	}
	return r
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

// Save writes the calibration to a file and creates its folder.
func (c *Calibration) Save(path string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = runfile.WriteJSON(path, c)
	}
	if err != nil {
		return fmt.Errorf("saving the calibration: %w", err)
	}
	return nil
}

// maxCalibration is larger than any calibration, in bytes.
const maxCalibration = 1 << 20

// LoadCalibration reads a saved calibration. If the file does not exist, the
// error is [io/fs.ErrNotExist].
func LoadCalibration(path string) (*Calibration, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the calibration: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxCalibration {
		return nil, fmt.Errorf("reading the calibration: %s is not a file of at most %d bytes", path, maxCalibration)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the calibration: %w", err)
	}
	c := new(Calibration)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("reading the calibration %s: %w", path, err)
	}
	return c, nil
}

// For reports whether the calibration is valid for a machine: same CPU model
// and number of cores.
func (c *Calibration) For(m Machine) bool {
	return c.Machine.CPU == m.CPU && c.Machine.CPUs == m.CPUs && c.Machine.OS == m.OS && c.Machine.Arch == m.Arch
}

// calibrated returns the range in a calibration file, or nil if it has none for
// this machine.
func calibrated(path string) *runfile.Calibrated {
	if path == "" {
		return nil
	}
	found, err := LoadCalibration(path)
	if err != nil || !found.For(ThisMachine()) {
		return nil
	}
	return &runfile.Calibrated{Taken: found.Taken, Range: found.Range}
}
