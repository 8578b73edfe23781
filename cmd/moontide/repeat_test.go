package main

import (
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A run.json repeats its run, with the same bytes. What is masked in it must be given again.
func TestRunIsRepeated(t *testing.T) {
	t.Parallel()
	w, dir := newWitness(t, (*httptest.Server).Start), t.TempDir()
	write(t, dir, "t.jsonl", strings.Repeat(`{"timestamp": 1, "input_length": 20, "output_length": 2}`+"\n", 10))
	bodies := func(args ...string) []string {
		w.bodies = nil
		if r := try(t, dir, "", append([]string{"replay"}, args...)...); !r.measured() {
			t.Fatalf("%v: exit status %d\n%s", args, r.status, r.err)
		}
		return w.bodies
	}
	for name, secret := range map[string][]string{"plain": nil, "secret": {"--header", "X-Key: hush", "--extra-body", `{"api_token": "hush"}`}} {
		run := append([]string{"t.jsonl", "--url", w.URL, "--rate", "500", "--arrival", "gamma", "--seed", "7", "--salt", "pepper", "--temperature", "0.5",
			"--set", "token-range=500:900", "--max-concurrency", "1", "--limit", "9", "--verdict", "lag=1h", "--slo", "mean_ttft<1h", "--out", name}, secret...)
		first := bodies(run...)
		config := []string{"--config", filepath.Join(name, "run.json"), "--out", name + "-again"}
		for i := 0; i < len(secret); i += 2 {
			missing, given := secret[i], slices.Delete(slices.Clone(secret), i, i+2)
			r := try(t, dir, "", slices.Concat([]string{"replay"}, config, given)...)
			if want := missing[2:] + " may be secret and is masked: set it again"; r.status != exitMisused || !strings.Contains(r.err, want) || strings.Contains(r.err, "hush") {
				t.Errorf("without %s: exit status %d: %s", missing, r.status, r.err)
			}
		}
		again := bodies(append(config, secret...)...)
		a, b := runOfFolder(t, filepath.Join(dir, name)), runOfFolder(t, filepath.Join(dir, name+"-again"))
		if len(first) != 9 || !slices.Equal(first, again) || a.Prompts != b.Prompts || a.Schedule != b.Schedule || a.Prompts == "" {
			t.Errorf("%s: bodies %q, again %q; digests %s and %s, %s and %s", name, first, again, a.Prompts, b.Prompts, a.Schedule, b.Schedule)
		}
		other := append(config[:2:2], append([]string{"--seed", "8", "--out", name + "-other"}, secret...)...)
		if slices.Equal(first, bodies(other...)) {
			t.Errorf("%s: a flag does not override the file", name)
		}
	}
}
