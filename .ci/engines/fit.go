package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moontide/.ci/results"
)

// foretold is a metric of a load that the engine was not fitted to: what the fitted
// engine predicts, and what each run measured.
type foretold struct {
	Engine    string    `json:"engine"`
	Load      string    `json:"load"`
	Metric    string    `json:"metric"`
	Predicted float64   `json:"predicted"`
	Runs      []float64 `json:"runs"`
	Limit     float64   `json:"limit"` // of the error, if the runs are equal
}

func (f foretold) measured() float64 {
	sum := 0.0
	for _, v := range f.Runs {
		sum += v
	}
	return sum / float64(len(f.Runs))
}

func (f foretold) error() float64 { return f.Predicted/f.measured() - 1 }

// noise is the range of equal runs, as a share of their mean.
func (f foretold) noise() float64 {
	return (slices.Max(f.Runs) - slices.Min(f.Runs)) / f.measured()
}

func (f foretold) limit() float64 { return max(f.Limit, 2*f.noise()) }

// foretoldMetrics are the metrics of a load, with the limits of their errors.
var foretoldMetrics = []struct {
	key   string
	limit float64
}{
	{"output_throughput", 0.1}, {"mean_ttft_ms", 0.15}, {"mean_tpot_ms", 0.1}, {"mean_e2el_ms", 0.1}, {"cached_share", 0.02},
}

// load is a load that is replayed and simulated.
type load struct {
	name  string
	rows  []row
	flags []string
}

const fitRuns = 3

// fittedEngine fits an engine to the server, and compares what it predicts of other
// loads with runs of them.
func fittedEngine(s *session) error {
	dir, err := s.folder("runs")
	if err != nil {
		return err
	}
	loads := []load{
		{"closed loop", varied(480, 700, 60), []string{"--closed", "--max-concurrency", "12"}},
		{"open loop", documents(300, 160), nil},
	}
	runs := make([][]string, len(loads))
	measure := func() error {
		i := len(runs[0])
		for j, l := range loads { // in turns, so that a slow minute is not of one load
			o, err := s.run(fmt.Sprint(l.name, " ", i+1), l.rows, append(l.flags, "--salt", fmt.Sprint(l.name, i))...)
			if err != nil {
				return err
			}
			runs[j] = append(runs[j], o.dir)
		}
		return nil
	}
	// The machine is not equally fast all the time: the noise of the loads is that of
	// the time in which the engine was measured.
	if err := measure(); err != nil {
		return err
	}
	file := filepath.Join(filepath.Dir(dir), "engine.json")
	text, err := s.moontide("fit-engine", "--url", s.server.url, "--out", dir, "--budget", "4m", "--max-concurrency", "64",
		"--server-metrics", s.server.url, "-o", file, "--png", dir+".png", "--max-num-seqs", "128", "--max-num-batched-tokens", "2048",
		"--engine-block-size", fmt.Sprint(s.engine.blockOf), "--num-gpu-blocks", fmt.Sprint(s.server.opts.blocks-1)) // one block is reserved
	if err != nil {
		return err
	}
	if err := os.WriteFile(dir+".out", []byte(text), 0o644); err != nil {
		return err
	}
	for len(runs[0]) < fitRuns {
		if err := measure(); err != nil {
			return err
		}
	}
	for j, l := range loads {
		if err := s.foretell(l, file, runs[j]); err != nil {
			return err
		}
	}
	return nil
}

// foretell compares the simulation of a load with its runs.
func (s *session) foretell(l load, file string, runs []string) error {
	dir, err := s.folder(l.name + " predicted")
	if err != nil {
		return err
	}
	simulate := slices.Concat([]string{"simulate", runs[0] + ".jsonl", "--block-size", fmt.Sprint(traceBlock), "--engine", file, "--cache-generated", "--out", dir}, l.flags)
	if _, err := s.moontide(simulate...); err != nil {
		return err
	}
	text, err := s.moontide("compare", "predicted="+dir, "measured="+strings.Join(runs, ","), "--json", "--png", dir+".png")
	if err != nil {
		return err
	}
	var compared struct {
		Differences []struct {
			Metric string
			A      float64
			BRuns  []float64 `json:"b_runs"`
		}
	}
	if err := json.Unmarshal([]byte(text), &compared); err != nil {
		return err
	}
	for _, m := range foretoldMetrics {
		for _, d := range compared.Differences {
			if d.Metric == m.key && slices.Max(d.BRuns) > 0 {
				f := foretold{s.engine.name, l.name, m.key, d.A, d.BRuns, m.limit}
				s.foretold = append(s.foretold, f)
				s.law(l.name+": "+m.key, fmt.Sprintf("%.4g within %.1f %%", f.measured(), 100*f.limit()),
					fmt.Sprintf("%.4g (%+.1f %%)", f.Predicted, 100*f.error()), math.Abs(f.error()) <= f.limit())
			}
		}
	}
	return nil
}

// moontide runs a command and returns its standard output.
func (s *session) moontide(args ...string) (string, error) {
	cmd := preferred(s.tools.moontide, args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("moontide %s: %w", args[0], errors.Join(err, errors.New(strings.TrimSpace(said.String()))))
	}
	return out.String(), nil
}

// varied are prompts that share nothing, with lengths of half to one and a half times
// isl and osl. The lengths differ, as they do in production: of requests of one length
// this server computes prompts up to 40 % faster, probably because its CPU kernels
// are prepared for each shape and kept.
func varied(n, isl, osl int) (rows []row) {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	next := uint64(1)
	for range n {
		r := row{ISL: isl/2 + rng.IntN(isl), OSL: osl/2 + rng.IntN(osl)}
		for range (r.ISL + traceBlock - 1) / traceBlock {
			r.IDs = append(r.IDs, next)
			next++
		}
		rows = append(rows, r)
	}
	return rows
}

// documents are questions about documents, which are more than fit into the cache
// and some of which are asked about much more often than others. gap is the mean
// time between arrivals in milliseconds, which is distributed exponentially.
func documents(n int, gap float64) (rows []row) {
	const count, skew = 60, 0.9
	rng := rand.New(rand.NewPCG(2, uint64(n)))
	var lengths [count]int // blocks
	var odds [count]float64
	sum := 0.0
	for i := range count {
		lengths[i] = 5 + rng.IntN(25)
		sum += math.Pow(float64(i+1), -skew)
		odds[i] = sum
	}
	next, at := uint64(count*1000), 0.0
	for range n {
		doc, _ := slices.BinarySearch(odds[:], rng.Float64()*sum)
		r := row{Timestamp: at, OSL: 5 + rng.IntN(40)}
		for j := range lengths[doc] {
			r.IDs = append(r.IDs, uint64(doc*1000+j))
		}
		for range 1 + rng.IntN(6) {
			r.IDs = append(r.IDs, next)
			next++
		}
		r.ISL = len(r.IDs)*traceBlock - rng.IntN(traceBlock)
		rows = append(rows, r)
		at += gap * rng.ExpFloat64()
	}
	return rows
}

// foretoldTable shows what the fitted engine predicted.
func (r *measurements) foretoldTable(p *results.Page) {
	p.Line(`
## Predicted by a fitted engine

%s drove its runs against the server and fitted an engine to them. These loads have other shapes: the first one's
prompts and answers vary between half and one and a half times 700 and 60 tokens; the second one arrives at random, and its documents are more
than fit into the prefix cache. (Requests of one length are faster, probably because this server prepares its CPU kernels for each shape of a step and keeps
them. A token took 12.4 us in steps of equal prompts and 15.3 us in steps of lengths that it had not seen, and TTFT in a closed loop of equal
prompts is predicted 29 to 39 %% too high.) The measurements are the mean of %d runs with other prompts; the noise
is the range of the runs. A prediction may be off by the limit or by twice the noise.

| load | metric | runs | predicted | error | noise | limit |
| --- | --- | --- | ---: | ---: | ---: | ---: |`, "`moontide fit-engine --url`", fitRuns)
	for _, f := range r.Foretold {
		var runs []string
		for _, v := range f.Runs {
			runs = append(runs, fmt.Sprintf("%.4g", v))
		}
		p.Row(f.Load, f.Metric, strings.Join(runs, ", "), fmt.Sprintf("%.4g", f.Predicted), fmt.Sprintf("%+.1f %%", 100*f.error()),
			fmt.Sprintf("%.1f %%", 100*f.noise()), fmt.Sprintf("%.1f %%", 100*f.limit()))
	}
}
