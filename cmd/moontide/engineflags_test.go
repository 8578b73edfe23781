package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// writeEngine writes an engine file and returns its path.
func writeEngine(t *testing.T, f *fit.File) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "engine.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// slowEngines returns a prefill and a decode engine with costs of their own.
func slowEngines() engine.Deployment {
	d := engine.Default()
	decode := d.Engine
	decode.Costs = engine.Costs{Step: 9 * engine.Millisecond, ContextToken: 46_700, Decode: engine.DecodeTable{{Sequences: 1}, {Sequences: 8, Cost: 2 * engine.Millisecond}}}
	d.DecodeEngine, d.Engines, d.Prefill, d.Decode = &decode, 0, 1, 1
	d.Transfer.Sharing, d.Transfer.FirstTokenAfter = engine.Batch, true
	return d
}

// recordOf simulates the sample trace and returns the bytes of its record.
func recordOf(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, dir, append([]string{"simulate", sample(t), "--out", "run"}, flags...)...)
	text := read(t, filepath.Join(dir, "run", runfile.RequestsFile))
	return string(text)
}

// An engine file gives the same run as its settings as flags, and a flag that is set
// gives the same run as a file with that setting, of prefill and decode engines.
func TestEngineFileEqualsFlags(t *testing.T) {
	t.Parallel()
	one := engine.Default()
	one.Engine.Costs.ContextToken, one.Engine.Costs.Decode, one.Engine.NoPrefixCache = 46_700, engine.DecodeTable{{Sequences: 1}, {Sequences: 8, Cost: 2 * engine.Millisecond}}, true
	one.Latency = 17e6
	flags := []string{"--decode-per-context-token", "46.7ns", "--decode-table", "1:0ms,8:2ms", "--no-prefix-cache", "--request-latency", "17ms"}
	if recordOf(t, "--engine", writeEngine(t, &fit.File{Deployment: one})) != recordOf(t, flags...) {
		t.Error("a file of one engine and the same flags differ")
	}
	split := slowEngines()
	path := writeEngine(t, &fit.File{Deployment: split})
	before := recordOf(t, "--engine", path)
	for _, of := range []*engine.Config{&split.Engine, split.DecodeEngine} {
		of.MaxSeqs, of.Costs.Step = 2, 20*engine.Millisecond
	}
	split.Decode, split.Transfer.Sharing = 3, engine.Independent
	changed := recordOf(t, "--engine", path, "--max-num-seqs", "2", "--step-base", "20ms", "--decode-engines", "3", "--transfer-sharing", "none")
	if changed == before || changed != recordOf(t, "--engine", writeEngine(t, &fit.File{Deployment: split})) {
		t.Error("flags do not override a file as another file does")
	}
}

// The run folder says what was simulated, and a load outside the fitted range is
// warned about in the messages and the report.
func TestEngineFileIsRecorded(t *testing.T) {
	t.Parallel()
	f := &fit.File{Deployment: slowEngines()}
	f.Fit = &fit.Fitted{Range: fit.Range{
		ISL: fit.Interval{Low: 1, High: 100_000_000}, OSL: fit.Interval{Low: 1, High: 5}, Concurrency: fit.Interval{Low: 1, High: 16},
	}}
	path, dir := writeEngine(t, f), t.TempDir()
	read, err := fit.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := try(t, dir, "", "simulate", sample(t), "--engine", path, "--max-concurrency", "32", "--out", "run")
	if r.status != exitDone {
		t.Fatalf("exit status %d: %s", r.status, r.err)
	}
	warning := "warning: outside the range that engine.json was fitted to: OSL "
	for _, want := range []string{warning, " (fitted: 1 to 5); Concurrency 32 (fitted: 1 to 16)"} {
		if !strings.Contains(r.err, want) || !strings.Contains(strings.Join(strings.Fields(r.out), " "), want) {
			t.Errorf("no %q in\n%s\n%s", want, r.err, r.out)
		}
	}
	e := runOfFolder(t, filepath.Join(dir, "run")).Target.Engines
	if e.Deployment != "1 prefill and 1 decode engines, round-robin routing" || e.File.Name != "engine.json" || e.File.SHA256 != read.SHA256 {
		t.Errorf("%+v", e)
	}
	must(t, dir, "simulate", sample(t), "--limit", "5", "--out", "plain")
	if e := runOfFolder(t, filepath.Join(dir, "plain")).Target.Engines; e.Deployment != "1 engine" || e.File.Name != "" {
		t.Errorf("without a file: %+v", e)
	}
}
