package experiment

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"moontide/replay"
	"moontide/replay/listen"
	"moontide/replay/monotonic"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/trace"
	"moontide/trace/stats"
)

// CalibrateConfig configures [Calibrate]. Only Start is required.
type CalibrateConfig struct {
	// Start starts a simulated endpoint without load limits in a separate
	// process on this machine; see [StartEndpoint].
	Start   func(ctx context.Context, p Pace) (Endpoint, error)
	Loads   []Load           // nil is [Loads]
	Each    func(LoadResult) // if not nil, called after each load
	Version string           // of the client
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
	Points  []LoadResult  `json:"loads"` // in the order in which they were driven
}

// Limit is the largest p99 error, and for [Sends] the largest p99 client lag,
// of a load within a client's range.
const Limit = time.Millisecond

// Calibrate measures the client under a fixed list of loads. It fails if no load is within
// the client's range.
func Calibrate(ctx context.Context, cfg CalibrateConfig) (*Calibration, error) {
	if err := checkSystem(); err != nil {
		return nil, err
	}
	if cfg.Loads == nil {
		cfg.Loads = Loads()
	}
	c := &Calibration{Version: cfg.Version, Taken: time.Now().UTC().Truncate(time.Second), Machine: ThisMachine(), LimitMS: trace.MS(Limit)}
	for _, load := range cfg.Loads {
		if files := listen.OpenFiles(); files > 0 && load.Requests+2*listen.OtherFiles > files {
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
	// before is the time of the first arrival: a process that just started is late.
	before = 100 * time.Millisecond
	// calibrationISL is the prompt length in tokens of loads that do not test it.
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
			at := trace.Some(trace.MS(before) + 1e3*float64(i)/l.RequestRate)
			if !yield(trace.Request{Timestamp: at, InputLength: l.ISL, OutputLength: l.OSL}, nil) {
				return
			}
		}
	}
}

// LoadResult is the measurement of one load.
type LoadResult struct {
	Load
	Lost int `json:"lost"` // failed requests
	// Streams is the largest number of requests in flight.
	Streams int `json:"streams"`
	// EventRate is over all streams; SentRate is from the first request sent to the last.
	EventRate float64 `json:"events_per_s"`
	SentRate  float64 `json:"requests_per_s"`
	// TTFT and ITL are the differences between the client's and the server's times of the
	// first token and of the gaps between tokens.
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
func (cfg *CalibrateConfig) drive(ctx context.Context, load Load) (p LoadResult, err error) {
	endpoint, err := cfg.Start(ctx, Pace{TPOT: time.Duration(float64(time.Second) / load.TokenRate), LockStep: load.LockStep})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, endpoint.Close()) }()
	truth := newTruth(load)
	var records []replay.Record
	result, err := Run(ctx, Config{
		Requests: load.rows(), Name: load.String(),
		keepFirstArrival: true,
		Settings:         settings.Settings{Client: openai.Config{URLs: []string{endpoint.URL}, Headers: []openai.Header{stampsHeader}, OnToken: truth.take}},
		Observer:         Observer{Record: func(rec replay.Record) { records = append(records, rec) }},
	})
	if err != nil && !errors.Is(err, ErrNoSuccess) {
		return p, err
	}
	p = LoadResult{Load: load, Lost: load.Requests - result.Run.Sent, Streams: result.Metrics.PeakConcurrency}
	truth.compare(records, result.Run.Started, &p)
	p.TooMuch = judge(p)
	return p, nil
}

// minEventShare is the minimum share of the planned events of a load within range.
const minEventShare = 0.95

// judge returns why a load is outside the client's range, or "".
func judge(p LoadResult) string {
	limit, planned := trace.MS(Limit), float64(p.Requests)*p.TokenRate
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
func rangeOf(points []LoadResult) (r runfile.Range) {
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
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("saving the calibration: %w", err)
	}
	return runfile.WriteJSON(path, c)
}

// For reports whether the calibration is valid for a machine: same CPU model
// and number of cores.
func (c *Calibration) For(m Machine) bool {
	m.Go = c.Machine.Go
	return c.Machine == m
}

// calibrated returns the range in a calibration file, or nil if it has none for
// this machine.
func calibrated(path string) *runfile.Calibrated {
	var c Calibration
	if found, err := readJSON(path, &c); err != nil || !found || !c.For(ThisMachine()) {
		return nil
	}
	return &runfile.Calibrated{Taken: c.Taken, Range: c.Range}
}

// Endpoint is a running simulated endpoint.
type Endpoint struct {
	URL string `json:"url"`
	// Close stops the endpoint and waits for it to exit.
	Close func() error `json:"-"`
}

// AnnounceEndpoint reports to [StartEndpoint] in the parent process that the
// endpoint accepts connections.
func AnnounceEndpoint(w io.Writer, url string) error {
	return json.NewEncoder(w).Encode(Endpoint{URL: url})
}

// StartEndpoint runs a command that serves an endpoint. The command must call
// [AnnounceEndpoint] with its standard output and exit when its standard input is closed,
// which happens however this process ends. If it does not start, the error includes its
// standard error.
func StartEndpoint(cmd *exec.Cmd) (e Endpoint, err error) {
	complaint := &firstBytes{}
	cmd.Stderr = complaint
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		return e, fmt.Errorf("starting an endpoint: %w", err)
	}
	reader := bufio.NewReader(out)
	line, err := reader.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &e)
	}
	if err == nil && e.URL == "" {
		err = errors.New("it announces no URL")
	}
	if err != nil {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
		return e, fmt.Errorf("starting an endpoint: %w; it says %q", err, complaint.text)
	}
	e.Close = func() error {
		in.Close()
		io.Copy(io.Discard, reader)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("the endpoint ended: %w", err)
		}
		return nil
	}
	return e, nil
}

// firstBytes keeps the first bytes written to it.
type firstBytes struct{ text []byte }

func (f *firstBytes) Write(b []byte) (int, error) {
	f.text = append(f.text, b[:min(len(b), 500-len(f.text))]...)
	return len(b), nil
}

// stampsHeader asks the simulated endpoint for the write time of each event.
var stampsHeader = openai.Header{Name: "X-Moontide-Stamps", Value: "1"}

// truth holds the times at which the endpoint wrote the tokens of a load.
type truth struct {
	load    Load
	written [][]int64 // by row and token: CLOCK_MONOTONIC in nanoseconds
}

func newTruth(load Load) *truth {
	t := &truth{load: load, written: make([][]int64, load.Requests)}
	for row := range t.written {
		t.written[row] = make([]int64, 0, load.OSL)
	}
	return t
}

// take stores the write time of an event. compare detects missing ones.
func (t *truth) take(row int, data []byte) {
	if at, ok := writtenAt(data); ok {
		t.written[row] = append(t.written[row], at)
	}
}

// writtenAt parses the write time at the end of an event.
func writtenAt(data []byte) (ns int64, ok bool) {
	_, number, found := bytes.Cut(data, []byte(`"written_ns":`))
	number, closed := bytes.CutSuffix(number, []byte("}"))
	ns, err := strconv.ParseInt(string(number), 10, 64)
	return ns, found && closed && err == nil
}

// compare fills in a point from the records.
func (t *truth) compare(records []replay.Record, start time.Time, p *LoadResult) {
	zero := monotonic.At(start)
	var ttft, itl, lag []float64
	var events float64 // per second
	var first, last time.Duration
	for i, rec := range records {
		if rec.Sent.Set {
			lag = append(lag, trace.MS(rec.ClientLag().Value))
			sent := rec.Sent.Value
			if i == 0 {
				first, last = sent, sent
			}
			first, last = min(first, sent), max(last, sent)
		}
		if rec.Class != replay.OK {
			p.Lost++
			continue
		}
		p.stamps = rec.Stamps
		stamp, gaps, ok := errorsOf(zero+int64(rec.First.Value), rec.Gaps, t.written[rec.Row])
		if !ok {
			p.Lost++
			continue
		}
		ttft = append(ttft, trace.MS(stamp.Abs()))
		for _, gap := range gaps {
			itl = append(itl, trace.MS(gap.Abs()))
		}
		events += tokenRate(rec.Gaps)
	}
	p.TTFT, p.ITL, p.ClientLag = spreadOf(ttft), spreadOf(itl), spreadOf(lag)
	if p.Kind == Streams {
		p.EventRate = events
	}
	if last > first {
		p.SentRate = float64(len(lag)-1) / (last - first).Seconds()
	}
}

// tokenRate returns the tokens per second of a stream with these gaps. The
// first gap is ignored because it sets the stream's phase.
func tokenRate(gaps []time.Duration) float64 {
	var sum time.Duration
	for i, gap := range gaps {
		if i > 0 {
			sum += gap
		}
	}
	if sum <= 0 {
		return 0
	}
	return float64(len(gaps)-1) / sum.Seconds()
}

// errorsOf compares the client's times of a response, the arrival of the first token and
// the gaps between tokens, with the server's write times, on the same clock in nanoseconds.
// ok is false if the token counts differ.
func errorsOf(first int64, gaps []time.Duration, written []int64) (ttft time.Duration, itl []time.Duration, ok bool) {
	if len(written) != len(gaps)+1 {
		return 0, nil, false
	}
	ttft = time.Duration(first - written[0])
	itl = make([]time.Duration, len(gaps))
	for i, gap := range gaps {
		itl[i] = gap - time.Duration(written[i+1]-written[i])
	}
	return ttft, itl, true
}
