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
	"moontide/traces"
)

// engineBlock is the usual block size of engines, for prompts that share parts of any
// length.
const engineBlock = 16

// Describe returns the description of the requests of a run by its settings.
func (c *Config) Describe() (*spec.Spec, error) {
	d := c.Description
	o := spec.Options{Name: "the settings"}
	if _, err := strconv.Atoi(d.SharedLen); d.Turns != "" || d.SharedLen != "" && err != nil {
		o.BlockSize = engineBlock
	}
	add := func(name, key, value string) {
		if value != "" {
			o.Settings = append(o.Settings, spec.Setting{Key: key, Value: value, From: name})
		}
	}
	positive := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	cv := d.CV
	if k := c.Pacing.Burstiness; k > 0 {
		cv = settings.FormatNumber(1 / math.Sqrt(k))
	}
	for _, row := range [][3]string{
		{"isl", "isl", d.ISL}, {"unique-isl", "unique_isl", d.UniqueISL}, {"osl", "osl", d.OSL}, {"correlation", "correlation", d.Correlation},
		{"arrival", "arrival.process", c.Pacing.Arrival}, {"cv", "arrival.cv", cv},
		{"shared-prompts", "shared.count", d.SharedPrompts}, {"shared-len", "shared.tokens", d.SharedLen}, {"zipf", "shared.zipf", d.Zipf},
		{"turns", "sessions.turns", d.Turns}, {"think-time", "sessions.think_time", d.ThinkTime}, {"new-tokens", "sessions.new_tokens", d.NewTokens},
		{"limit", "num_requests", positive(c.Pacing.Limit)}, {"block-size", "block_size", positive(c.Trace.BlockSize)}, {"seed", "seed", strconv.FormatUint(c.Seed, 10)},
	} {
		add(row[0], row[1], row[2])
	}
	if r := c.Pacing.Rate; r.Set && !math.IsInf(r.Value, 1) {
		add("rate", "rate", settings.FormatNumber(r.Value))
	}
	var text []byte
	if d.Spec != "" {
		var err error
		if text, err = readSpec(d.Spec); err != nil {
			return nil, err
		}
		o.Name = filepath.Base(d.Spec)
	}
	described, err := spec.Parse(text, o)
	if err != nil && d.Spec == "" {
		return nil, wrong("%v", err)
	}
	return described, err
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
	if _, err := io.Copy(&text, io.LimitReader(f, spec.MaxText+1)); err != nil {
		return nil, fmt.Errorf("reading description: %w", err)
	}
	return text.Bytes(), nil
}
