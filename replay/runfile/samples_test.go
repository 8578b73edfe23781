package runfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func samplesOf(t *testing.T, dir string) (all []Sample) {
	t.Helper()
	for s, err := range Samples(dir) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// Samples reach the operating system when they are written, so they survive a
// kill, and an incomplete line is harmless.
func TestSamples(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	f, err := Create(dir, Run{})
	if err != nil {
		t.Fatal(err)
	}
	if got := samplesOf(t, dir); got != nil {
		t.Errorf("before any: %v", got)
	}
	want := []Sample{
		{AtMS: 0, Server: &ServerFigures{Engine: "vllm", Engines: 1, KVUse: new(0.0)}},
		{AtMS: 1000.5, SpanMS: 1000.5, CPU: 0.1, MachineShare: 0.05, GCPauses: 2, GCPauseMS: 0.3, GCPauseMaxMS: 0.2, SchedP50MS: 0.01, SchedP99MS: 0.02,
			ReadDelay: ReadDelay{Reads: 7, P99MS: 1.5}, RSSBytes: 1 << 33, InFlight: 3, Sent: 5, Done: 2, ServerError: "no\nanswer"},
	}
	for _, s := range want {
		if err := f.Sample(s); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, samplesOf(t, dir)); diff != "" { // nothing was closed
		t.Error(diff)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, SamplesFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, `{"at_ms": 20`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, samplesOf(t, dir)); diff != "" {
		t.Error(diff)
	}
}
