package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"moontide/replay/settings"
	"moontide/synth/spec"
	"moontide/trace"
	"moontide/trace/yaml"
	"moontide/traces"
)

// engineBlock is the usual block size of engines, for prompts that share parts of any
// length.
const engineBlock = 16

// Describe returns the description of the requests of a run by its settings.
func (c *Config) Describe() (*spec.Spec, error) {
	d := c.Description
	o := spec.Options{Name: "the settings", Settings: []spec.Setting{{Key: "seed", Value: strconv.FormatUint(c.Seed, 10), From: "seed"}}}
	if _, err := strconv.Atoi(d.SharedLen); d.Turns != "" || d.SharedLen != "" && err != nil {
		o.BlockSize = engineBlock
	}
	if d.Spec != "" {
		o.Name = filepath.Base(d.Spec)
	}
	s := c.Settings
	if math.IsInf(s.Pacing.Rate.Value, 1) { // all at once, whatever the description
		s.Pacing.Rate = trace.Opt[float64]{}
	}
	described, err := Description(&s, o, func(setting string) string {
		if d.Spec == "" { // the error is one of settings
			return "{" + setting + "}"
		}
		return setting
	})
	if err != nil && d.Spec == "" {
		return nil, wrong("%v", err)
	}
	return described, err
}

// Description returns the requests that settings describe, but for the seed. Errors name a
// setting with named.
func Description(s *settings.Settings, o spec.Options, named func(setting string) string) (*spec.Spec, error) {
	d := s.Description
	positive := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	cvName, cv, rate := "cv", d.CV, ""
	if k := s.Pacing.Burstiness; k > 0 {
		cvName, cv = "burstiness", settings.FormatNumber(1/math.Sqrt(k))
	}
	if r := s.Pacing.Rate; r.Set {
		rate = settings.FormatNumber(r.Value)
	}
	for _, row := range [][3]string{
		{"isl", "isl", d.ISL}, {"unique-isl", "unique_isl", d.UniqueISL}, {"osl", "osl", d.OSL}, {"correlation", "correlation", d.Correlation},
		{"rate", "rate", rate}, {"arrival", "arrival.process", s.Pacing.Arrival}, {cvName, "arrival.cv", cv},
		{"shared-prompts", "shared.count", d.SharedPrompts}, {"shared-len", "shared.tokens", d.SharedLen}, {"zipf", "shared.zipf", d.Zipf},
		{"turns", "sessions.turns", d.Turns}, {"think-time", "sessions.think_time", d.ThinkTime}, {"new-tokens", "sessions.new_tokens", d.NewTokens},
		{"limit", "num_requests", positive(s.Pacing.Limit)}, {"block-size", "block_size", positive(s.Trace.BlockSize)},
	} {
		if row[2] != "" {
			o.Settings = append(o.Settings, spec.Setting{Key: row[1], Value: row[2], From: named(row[0])})
		}
	}
	var text []byte
	if d.Spec != "" {
		var err error
		if text, err = readSpec(d.Spec); err != nil {
			return nil, err
		}
	}
	return spec.Parse(text, o)
}

// draw returns the requests of a description and their block size.
func (c *Config) draw() (trace.Requests, int, error) {
	d, err := c.Describe()
	if err != nil {
		return nil, 0, err
	}
	return d.Requests(), d.BlockSize(), nil
}

// readSpec returns the text of a description, a file or a ready-made one. It reads at most
// one byte over the limit.
func readSpec(name string) ([]byte, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		text, ok := traces.Spec(name)
		if !ok {
			return nil, fmt.Errorf("reading description: %w; ready-made descriptions: %s", err, strings.Join(traces.Specs(), ", "))
		}
		return text, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading description: %w", err)
	}
	defer f.Close()
	var text bytes.Buffer
	if _, err := io.Copy(&text, io.LimitReader(f, yaml.MaxText+1)); err != nil {
		return nil, fmt.Errorf("reading description: %w", err)
	}
	return text.Bytes(), nil
}
