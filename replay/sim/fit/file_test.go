package fit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
	"moontide/trace/routing"
)

// disaggregated returns a deployment with every setting.
func disaggregated() engine.Deployment {
	decode := engine.Config{
		Costs:   engine.Costs{Step: 9 * engine.Millisecond, ContextToken: 46_700, Decode: engine.DecodeTable{{Sequences: 1}, {Sequences: 8, Cost: 2500 * engine.Microsecond}, {Sequences: 64, Cost: 9 * engine.Millisecond}}},
		MaxSeqs: 2048, BlockSize: 32,
	}
	return engine.Deployment{
		Engine: engine.Config{
			Costs:   engine.Costs{Step: 4 * engine.Millisecond, PrefillStep: 71 * engine.Millisecond, PrefillToken: 150_500_000, Attention: 3},
			MaxSeqs: 256, MaxBatchedTokens: 8192, BlockSize: 32, KVBlocks: 1000, MaxModelLen: 5000, NoPrefixCache: true,
		},
		DecodeEngine: &decode, Prefill: 3, Decode: 1, Routing: routing.LeastLoaded, Latency: 17300 * time.Microsecond,
		Transfer: engine.Transfer{Base: 2 * time.Millisecond, PerToken: 1_234_567, Sharing: engine.Batch, FirstTokenAfter: true},
	}
}

// fittedFile returns a file of the deployment above.
func fittedFile() *fit.File {
	return &fit.File{Deployment: disaggregated(), Fit: &fit.Fitted{
		HeldOut:       []fit.Error{{Metric: fit.MeanTTFT, Predictions: 4, Median: 0.02, P90: 0.15, Max: 0.23}, {Metric: fit.P99E2EL, P90: 0.5}},
		NotIdentified: []string{"decode-engine.decode-table.8"}, Fitted: 2, Excluded: 1,
		Range:      fit.Range{ISL: fit.Interval{Low: 64, High: 3000}, OSL: fit.Interval{Low: 150, High: 150}, Concurrency: fit.Interval{Low: 1, High: 128}},
		Provenance: fit.Provenance{Version: "v1", Sources: []fit.Source{{Name: "a.csv", SHA256: "abc"}}, Model: "m"},
	}}
}

// Predictions have the error of nine in ten held-out ones, and percentiles that of p99.
func TestHeldOutError(t *testing.T) {
	f := fittedFile()
	for name, want := range map[string]float64{"mean_ttft_ms": 0.15, "p99_e2el_ms": 0.5, "p90_e2el_ms": 0.5} {
		if share, known := f.HeldOutError(name); share != want || !known {
			t.Errorf("%s: error %v, %v", name, share, known)
		}
	}
	for name, other := range map[string]*fit.File{"p99_ttft_ms": f, "mean_ttft_ms": nil} {
		if _, known := other.HeldOutError(name); known {
			t.Errorf("an error of %s", name)
		}
	}
}

func textOf(t *testing.T, f *fit.File) string {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A file that is read has the deployment and the fit that were written, to the
// picosecond, and is written as the same bytes.
func TestReadsWhatItWrites(t *testing.T) {
	for name, f := range map[string]*fit.File{
		"fitted": fittedFile(), "defaults": {Deployment: engine.Default()}, "zero": {},
	} {
		path := filepath.Join(t.TempDir(), "engine.json")
		if err := os.WriteFile(path, []byte(textOf(t, f)), 0o644); err != nil {
			t.Fatal(err)
		}
		read, err := fit.ReadFile(path)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, textOf(t, f))
		}
		if got, want := read.Deployment, f.Deployment; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if !reflect.DeepEqual(read.Fit, f.Fit) {
			t.Errorf("%s: %+v, want %+v", name, read.Fit, f.Fit)
		}
		if textOf(t, read) != textOf(t, f) {
			t.Errorf("%s: written again, it is\n%s", name, textOf(t, read))
		}
		if read.Name != "engine.json" || len(read.SHA256) != 64 {
			t.Errorf("%s: %q, %q", name, read.Name, read.SHA256)
		}
	}
}

const byHand = `{
  "format": "moontide engine",
  "version": 1,
  "deployment": {"engines": 2, "routing": "prefix", "request-latency": "17ms"},
  "engine": {"step-base": "4.2ms", "decode-per-context-token": "46.7ns", "no-prefix-cache": true}
}`

// A file by hand needs only what differs from 0.
func TestReadsByHand(t *testing.T) {
	f, err := fit.ParseFile([]byte(byHand))
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Deployment{
		Engines: 2, Routing: routing.Prefix, Latency: 17 * time.Millisecond,
		Engine: engine.Config{Costs: engine.Costs{Step: 4200 * engine.Microsecond, ContextToken: 46_700}, NoPrefixCache: true},
	}
	if got := f.Deployment; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Errors name the key, and for damaged JSON the place.
func TestReadErrors(t *testing.T) {
	fitted := textOf(t, fittedFile())
	for _, test := range []struct{ text, from, to, want string }{
		{byHand, `"version": 1`, `"version": 2`, `format "moontide engine", version 2: want "moontide engine", version 1; if another version wrote the file, fit its measurements again`},
		{byHand, "moontide engine", "engine", `format "engine", version 1: want "moontide engine"`},
		{byHand, `"engines": 2`, `"engins": 2`, "deployment.engins: unknown setting; the settings of this section are decode-engines, engines, "},
		{byHand, `"4.2ms"`, `4.2`, `engine.step-base: time "4.2": want a number with a unit such as 46.7ns`},
		{byHand, `"engines": 2`, `"engines": 99999`, "at most 1024"},
		{byHand, `"engines": 2`, `"engines" 2`, "JSON at byte "},
		{byHand, "}\n}", "}", "ends early"},
		{byHand, "}\n}", "}\n} {}", "text after the JSON object"},
		{byHand, `"deployment": {`, `"decode-engine": {"step-base": "1ms"}, "deployment": {`, "decode-engine: the deployment has no decode engines"},
		{fitted, `"low": 64`, `"low": 6400`, "fit: range of the ISL: low 6400 and high 3000 are not an interval"},
		{fitted, `"predictions": 4`, `"predictions": -4`, "fit: held_out_errors[0]: a negative number"},
		{fitted, `"not_identified"`, `"covariance"`, `unknown key "covariance"; if another version`},
	} {
		text := strings.Replace(test.text, test.from, test.to, 1)
		if text == test.text {
			t.Fatalf("no %q in\n%s", test.from, text)
		}
		if _, err := fit.ParseFile([]byte(text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s -> %s: %v, want %s", test.from, test.to, err, test.want)
		}
	}
	large := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(large, bytes.Repeat([]byte(" "), 5<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := fit.ReadFile(large); err == nil || !strings.Contains(err.Error(), large+": more than 4194304 bytes") {
		t.Error(err)
	}
	if _, err := fit.ReadFile(large + "x"); err == nil || !strings.Contains(err.Error(), large+"x") {
		t.Error(err)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(byHand))
	var b bytes.Buffer
	fittedFile().Write(&b)
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := fit.ParseFile(text)
		if err != nil {
			return
		}
		again, err := fit.ParseFile([]byte(textOf(t, file)))
		if err != nil || !reflect.DeepEqual(again.Deployment, file.Deployment) {
			t.Errorf("%s\nis read again as %+v, %v", text, again, err)
		}
	})
}
