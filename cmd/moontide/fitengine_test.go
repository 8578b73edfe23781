package main

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// measuredEngine is the engine that the tests fit.
func measuredEngine() engine.Deployment {
	return engine.Deployment{
		Engines: 1, Latency: 15 * time.Millisecond,
		Engine: engine.Config{
			Costs: engine.Costs{
				Step: 12 * engine.Millisecond, PrefillStep: 8 * engine.Millisecond, PrefillToken: 60 * engine.Microsecond, ContextToken: 80 * engine.Nanosecond,
				Decode: engine.DecodeTable{{Sequences: 1}, {Sequences: 8, Cost: 3 * engine.Millisecond}, {Sequences: 32, Cost: 8 * engine.Millisecond}},
			},
			MaxSeqs: 256, MaxBatchedTokens: 8192, KVBlocks: 50_000, BlockSize: 16,
		},
	}
}

// tableOf returns a CSV table of what a deployment measures.
func tableOf(t *testing.T, d engine.Deployment) string {
	t.Helper()
	b := &strings.Builder{}
	b.WriteString("isl,osl,concurrency,prompts")
	for _, m := range fit.Metrics {
		b.WriteString("," + string(m))
	}
	for _, l := range []fit.Load{
		{ISL: 64, OSL: 100, Concurrency: 1}, {ISL: 1000, OSL: 100, Concurrency: 1}, {ISL: 64, OSL: 100, Concurrency: 8}, {ISL: 1000, OSL: 100, Concurrency: 8},
		{ISL: 300, OSL: 20, Concurrency: 8}, {ISL: 300, OSL: 60, Concurrency: 5},
	} {
		l.Prompts = 3 * l.Concurrency
		values, err := fit.Simulate(d, l, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "\n%d,%d,%d,%d", l.ISL, l.OSL, l.Concurrency, l.Prompts)
		for _, m := range fit.Metrics {
			fmt.Fprintf(b, ",%.4f", values[m])
		}
	}
	return b.String() + "\n"
}

// A table gives an engine with the costs that it was measured with, in every form, and the
// same bytes again. The engine can be simulated, with its held-out error.
func TestFitEngineOfTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.csv", tableOf(t, measuredEngine()))
	line := []string{"fit-engine", "--table", "t.csv", "--max-num-seqs", "256", "--max-num-batched-tokens", "8192", "-o", "e.json"}
	text := must(t, dir, append(line, "--output", "png=e.png", "--html", "e.html")...)
	for _, want := range []string{"ENGINE FIT", "t.csv", "step-base", "Fitted range"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if _, err := png.Decode(bytes.NewReader(read(t, filepath.Join(dir, "e.png")))); err != nil {
		t.Error(err)
	}
	if page := readFile(t, filepath.Join(dir, "e.html")); !strings.Contains(page, "<svg") {
		t.Error("a page without figures")
	}
	before := read(t, filepath.Join(dir, "e.json"))
	agrees(t, "engine.json", string(before))
	file, err := fit.ParseFile(before)
	if err != nil {
		t.Fatal(err)
	}
	got, want := file.Deployment.Engine.Costs, measuredEngine().Engine.Costs
	if !within(got.Step, want.Step) || !within(got.PrefillToken, want.PrefillToken) {
		t.Errorf("costs are %+v, want %+v", got, want)
	}
	if f := file.Fit; f.Fitted != 6 || len(f.HeldOut) != len(fit.Metrics) || f.Provenance.Sources[0].Name != "t.csv" || len(f.Provenance.Sources[0].SHA256) != 64 {
		t.Errorf("%+v", f)
	}
	if rows := must(t, dir, append(line, "--output", "csv")...); strings.Count(rows, "\n") < 6 {
		t.Errorf("rows\n%s", rows)
	}
	if !bytes.Equal(before, read(t, filepath.Join(dir, "e.json"))) {
		t.Error("the same command gives other bytes")
	}
	if r := try(t, dir, "", "simulate", sample(t), "--engine", "e.json", "--limit", "3", "--out", "run"); r.status != exitDone || !strings.Contains(r.err, "errors of e.json on held-out measurements, for nine in ten predictions: Output token throughput ±") {
		t.Errorf("exit status %d\n%s", r.status, r.err)
	}
	if report := must(t, dir, "report", "run"); !strings.Contains(report, "errors of e.json on held-out measurements") {
		t.Errorf("the report lacks the errors of the engine:\n%s", report)
	}
	sweep := must(t, dir, "bench", sample(t), "--limit", "3", "--virtual", "--engine", "e.json", "--speedup", "1,2", "--out", "sweep", "--json")
	if !strings.Contains(sweep, `"held_out_errors": {
    "mean_e2el_ms": `) {
		t.Errorf("the outcome lacks the errors of the engine:\n%s", sweep)
	}
}

// within reports whether costs differ by less than a tenth.
func within(a, b engine.Cost) bool { return math.Abs(float64(a)/float64(b)-1) < 0.1 }

// With --refit-prefill, the costs of decoding stay, and two rows are enough.
func TestFitEngineRefits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known := measuredEngine()
	file := writeEngine(t, &fit.File{Deployment: known})
	known.Engine.Costs.PrefillToken *= 2
	lines := strings.SplitAfter(tableOf(t, known), "\n")
	write(t, dir, "t.csv", lines[0]+lines[2]+lines[3])
	must(t, dir, "fit-engine", "--table", "t.csv", "--engine", file, "--refit-prefill", "-o", "e.json")
	fitted, err := fit.ReadFile(filepath.Join(dir, "e.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, want := fitted.Deployment.Engine.Costs, known.Engine.Costs
	if got.Step != want.Step || got.Decode.String() != want.Decode.String() || got.ContextToken != want.ContextToken || !within(got.PrefillToken, want.PrefillToken) {
		t.Errorf("costs are %+v, want %+v", got, want)
	}
}

// A server that is measured by --url has its runs planned, announced, kept and fitted;
// the command continues, and its folders can be fitted again.
func TestFitEngineMeasures(t *testing.T) {
	t.Parallel()
	url := serveFast(t, "--engine", writeEngine(t, &fit.File{Deployment: measuredEngine()}), "--step-base", "500us", "--request-latency", "1ms", "--prefill-step", "1ms")
	dir := t.TempDir()
	line := []string{"fit-engine", "--url", url, "--out", "runs", "--long-isl", "256", "--max-concurrency", "4", "--verdict", "lag=10s", "-o", "e.json"}
	r := try(t, dir, "", line...)
	if r.status != exitDone {
		t.Fatalf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	for _, want := range []string{"planned: decode-4, ", "saturated prefill", "engine written to e.json"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("no %q in\n%s", want, r.err)
		}
	}
	if !strings.Contains(r.out, " runs of sim") {
		t.Error(r.out)
	}
	file, err := fit.ReadFile(filepath.Join(dir, "e.json"))
	if err != nil {
		t.Fatal(err)
	}
	// The KV cache is that of the server's metrics.
	if e := file.Deployment.Engine; e.BlockSize != 16 || e.KVBlocks != 8_000_000 {
		t.Errorf("blocks of %d tokens, %d blocks", e.BlockSize, e.KVBlocks)
	}
	if p := file.Fit.Provenance; p.Model != "sim" || p.Server != "vllm" {
		t.Errorf("%+v", p)
	}
	again := try(t, dir, "", line...)
	runs := strings.Count(r.err, "recording in ")
	if n := strings.Count(again.err, "already done: "); again.status != exitDone || n != runs {
		t.Errorf("again: exit status %d, %d of %d runs found\n%s", again.status, n, runs, again.err)
	}
	if diff := cmp.Diff(strings.Split(r.out, "\n"), strings.Split(again.out, "\n")); diff != "" {
		t.Errorf("fitted again: %s", diff)
	}
	folders, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if out := must(t, dir, append([]string{"fit-engine", "--output", "csv"}, folders...)...); !strings.Contains(out, "all-together") {
		t.Errorf("of the folders:\n%s", out)
	}
}

// Runs of different models are no measurements of one engine, and INVALID runs none at
// all.
func TestFitEngineRefusesRuns(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t, "--model", "a"), t.TempDir()
	for model, url := range map[string]string{"a": url, "b": serveFast(t, "--model", "b")} {
		must(t, dir, "replay", sample(t), "--url", url, "--limit", "3", "--speedup", "1000", "--verdict", "lag=10s", "--out", model)
	}
	if r := try(t, dir, "", "fit-engine", "a", "b"); r.status != exitFailed || !strings.Contains(r.err, "the runs are of different models: b is of b, those before it are of a") {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
	must(t, dir, "replay", sample(t), "--url", url, "--model", "a", "--limit", "3", "--speedup", "1000", "--verdict", "lag=1ns,lag-share=0.000001", "--out", "invalid")
	if r := try(t, dir, "", "fit-engine", "a", "./a"); r.status != exitFailed || !strings.Contains(r.err, "./a has the same run as an earlier folder") {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
	r := try(t, dir, "", "fit-engine", "invalid")
	if r.status != exitInvalid || !strings.Contains(r.err, "not fitted: invalid: the run is INVALID: ") || !strings.Contains(r.err, "no run can be fitted") {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "engine.json")); err == nil {
		t.Error("an engine was written")
	}
}

// Measurements that contradict themselves are refused, with the reason for each row.
func TestFitEngineRefusesContradictions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := strings.Split(strings.TrimSpace(tableOf(t, measuredEngine())), "\n")
	at := slices.Index(strings.Split(lines[0], ","), string(fit.OutputThroughput))
	for i := 1; i <= 3; i++ { // tokens of other runs
		cells := strings.Split(lines[i], ",")
		cells[at] = "3.5"
		lines[i] = strings.Join(cells, ",")
	}
	write(t, dir, "t.csv", strings.Join(lines, "\n"))
	r := try(t, dir, "", "fit-engine", "--table", "t.csv", "-o", "e.json")
	if r.status != exitFailed || !strings.Contains(r.err, "3 of 6 measurements contradict themselves") {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
	for _, want := range []string{"ENGINE FIT: REFUSED", "line 2 (excluded): ", "line 4 (excluded): "} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "e.json")); err == nil {
		t.Error("an engine was written")
	}
}
