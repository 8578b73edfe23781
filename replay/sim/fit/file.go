package fit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moontide/replay/sim/engine"
	"moontide/trace/jsonscan"
)

// File is an engine file: a JSON object with a deployment of simulated engines and, if its
// costs were fitted, what is known about the fit.
//
//	{
//	  "format": "moontide engine",
//	  "version": 1,
//	  "deployment": {"engines": 2, "routing": "prefix", "request-latency": "17ms"},
//	  "engine": {"max-num-seqs": 256, "step-base": "4.2ms", "decode-per-context-token": "46.7ns"},
//	  "fit": {...}
//	}
//
// Its settings are the [engine.Parameters], by name. Times have a unit. "decode-engine" has
// the settings of decode engines if they differ from prefill engines. A setting that is
// missing is 0: no limit, or no cost. A file without a [Fitted] may be written by hand.
// Unknown keys are refused. The same fit gives the same bytes.
type File struct {
	Name       string // base name of the file that was read
	SHA256     string // of its bytes
	Deployment engine.Deployment
	Fit        *Fitted // nil if the costs were not fitted
}

// Fitted says how well costs are known, and from what.
type Fitted struct {
	HeldOut       []Error    `json:"held_out_errors"` // of predictions by fits without the measurement
	NotIdentified []string   `json:"not_identified"`  // names of estimates that hardly depend on the measurements
	Range         Range      `json:"range"`           // of loads that were fitted
	Fitted        int        `json:"fitted"`          // measurements
	Excluded      int        `json:"excluded"`        // measurements, by the screening
	Provenance    Provenance `json:"provenance"`
}

// Error summarises the errors of the predictions of a metric, as shares of the measured
// values with four decimals.
type Error struct {
	Metric      Metric  `json:"metric"`
	Predictions int     `json:"predictions"`
	Median      float64 `json:"median"`
	P90         float64 `json:"p90"`
	Max         float64 `json:"max"`
}

// Provenance is what a fit was made from.
type Provenance struct {
	Version string   `json:"version"` // of the program
	Sources []Source `json:"sources"`
	Model   string   `json:"model,omitempty"`  // that was served
	Server  string   `json:"server,omitempty"` // such as vllm
}

// Source is a file or run folder.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Range is a range of loads. An interval of 0 is unknown.
type Range struct {
	ISL         Interval `json:"isl"`         // tokens of a prompt
	OSL         Interval `json:"osl"`         // tokens of an answer
	Concurrency Interval `json:"concurrency"` // requests in flight
	Running     Interval `json:"running"`     // sequences running on an engine
}

// Interval is a range of integers, both ends included.
type Interval struct {
	Low  int `json:"low"`
	High int `json:"high"`
}

func (i *Interval) include(n int) {
	if *i == (Interval{}) {
		i.Low = n
	}
	i.Low, i.High = min(i.Low, n), max(i.High, n)
}

// include extends the range by a fitted measurement.
func (r *Range) include(m *Measurement, engines int) {
	r.ISL.include(m.Load.ISL)
	r.OSL.include(m.Load.OSL)
	for _, q := range m.Load.Requests {
		r.ISL.include(q.Input)
		r.OSL.include(q.Output)
	}
	batch := int(math.Ceil(m.batch(engines)))
	r.Concurrency.include(batch * engines)
	r.Running.include(batch)
}

// NamedInterval is an interval with a name and a unit.
type NamedInterval struct {
	Name, Unit string
	Interval
}

// Intervals lists the intervals.
func (r Range) Intervals() []NamedInterval {
	return []NamedInterval{
		{"ISL", "tokens", r.ISL}, {"OSL", "tokens", r.OSL}, {"Concurrency", "requests in flight", r.Concurrency}, {"Running sequences", "per engine", r.Running},
	}
}

const (
	fileFormat  = "moontide engine"
	fileVersion = 1
	maxFileSize = 4 << 20
	fitAgain    = "if another version wrote the file, fit its measurements again"
)

// content is the JSON of a file.
type content struct {
	Format       string   `json:"format"`
	Version      int      `json:"version"`
	Deployment   settings `json:"deployment"`
	Engine       settings `json:"engine"`
	DecodeEngine settings `json:"decode-engine,omitempty"`
	Fit          *Fitted  `json:"fit,omitempty"`
}

// ReadFile reads the file at path, which may come from an untrusted source. Errors name
// the path and the key.
func ReadFile(path string) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading engine file: %w", err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading engine file: %w", err)
	}
	f, err := ParseFile(text)
	if err != nil {
		return nil, fmt.Errorf("engine file %s: %w", path, err)
	}
	f.Name = filepath.Base(path)
	return f, nil
}

// ParseFile parses the content of a file.
func ParseFile(text []byte) (*File, error) {
	if len(text) > maxFileSize {
		return nil, fmt.Errorf("more than %d bytes", maxFileSize)
	}
	var c content
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	in.UseNumber()
	if err := in.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w; %s", jsonscan.Fault(err), fitAgain)
	}
	var d, decode engine.Deployment
	if c.DecodeEngine != nil {
		d.DecodeEngine = &decode.Engine
	}
	err := cmp.Or(c.Deployment.set(&d, "deployment"), c.Engine.set(&d, "engine"), c.DecodeEngine.set(&decode, "decode-engine"), d.Validate(), c.Fit.check())
	_, after := in.Token()
	switch {
	case after != io.EOF:
		return nil, errors.New("text after the JSON object")
	case c.Format != fileFormat || c.Version != fileVersion:
		return nil, fmt.Errorf("format %.40q, version %d: want %q, version %d; %s", c.Format, c.Version, fileFormat, fileVersion, fitAgain)
	case c.Engine == nil:
		return nil, errors.New("no section engine")
	case err != nil:
		return nil, err
	case c.DecodeEngine != nil && !d.Disaggregated():
		return nil, errors.New("decode-engine: the deployment has no decode engines: set prefill-engines and decode-engines")
	}
	digest := sha256.Sum256(text)
	return &File{SHA256: hex.EncodeToString(digest[:]), Deployment: d, Fit: c.Fit}, nil
}

// Write writes the file.
func (f *File) Write(w io.Writer) error {
	d := f.Deployment
	c := content{Format: fileFormat, Version: fileVersion, Deployment: settingsOf(&d, "deployment"), Engine: settingsOf(&d, "engine"), Fit: f.Fit}
	if d.DecodeEngine != nil {
		c.DecodeEngine = settingsOf(&engine.Deployment{Engine: *d.DecodeEngine}, "decode-engine")
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(c)
}

// settings are the parameters of a section by name: numbers, true and false, or texts.
type settings map[string]any

// parametersOf returns the parameters of a section by name.
func parametersOf(section string) map[string]engine.Parameter {
	all := map[string]engine.Parameter{}
	for _, p := range engine.Parameters {
		if (p.OfEngine == nil) == (section == "deployment") {
			all[p.Name] = p
		}
	}
	return all
}

// set sets the settings of a section.
func (s settings) set(d *engine.Deployment, section string) error {
	known := parametersOf(section)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		err := fmt.Errorf("unknown setting; the settings of this section are %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		if p, found := known[name]; found {
			err = p.Set(d, fmt.Sprint(s[name]))
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", section, name, err)
		}
	}
	return nil
}

// settingsOf returns the settings of a section that are not 0.
func settingsOf(d *engine.Deployment, section string) settings {
	all := settings{}
	for name, p := range parametersOf(section) {
		text := p.Text(d)
		switch {
		case p.IsZero(d):
		case json.Valid([]byte(text)): // a number, true or false
			all[name] = json.RawMessage(text)
		default:
			all[name] = text
		}
	}
	return all
}

// check returns the first error in what is known about a fit.
func (f *Fitted) check() error {
	if f == nil {
		return nil
	}
	for _, r := range f.Range.Intervals() {
		if r.Low < 0 || r.High < r.Low {
			return fmt.Errorf("fit: range of the %s: low %d and high %d are not an interval", r.Name, r.Low, r.High)
		}
	}
	for i, e := range f.HeldOut {
		if min(float64(e.Predictions), e.Median, e.P90, e.Max) < 0 {
			return fmt.Errorf("fit: held_out_errors[%d]: a negative number", i)
		}
	}
	return nil
}

// HeldOutError returns the error of a metric that nine of ten predictions of held-out
// measurements did not exceed, false if it is not known. A percentile has that of p99.
func (f *File) HeldOutError(metric string) (share float64, known bool) {
	if f == nil || f.Fit == nil {
		return 0, false
	}
	if percentile, latency, found := strings.Cut(metric, "_"); found && strings.HasPrefix(percentile, "p") {
		metric = "p99_" + latency
	}
	for _, e := range f.Fit.HeldOut {
		if e.Metric == Metric(metric) {
			return e.P90, true
		}
	}
	return 0, false
}

// Outside returns what the upper ends of a load are outside of the fitted range, nil if they
// are inside or nothing was fitted. Intervals of 0 are not compared.
func (f *File) Outside(load Range) (warnings []string) {
	if f.Fit == nil {
		return nil
	}
	const slack = 1.1 // for loads that are hardly outside
	fitted := f.Fit.Range.Intervals()
	for i, l := range load.Intervals() {
		at, r := float64(l.High), fitted[i]
		if r.High > 0 && at > 0 && (at > slack*float64(r.High) || slack*at < float64(r.Low)) {
			warnings = append(warnings, fmt.Sprintf("%s %d (fitted: %d to %d)", l.Name, l.High, r.Low, r.High))
		}
	}
	return warnings
}
