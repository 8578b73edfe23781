package enginefile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/enginefile"
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

// fittedFile returns the file of a fit of the deployment above.
func fittedFile() *enginefile.File {
	f := enginefile.New(disaggregated())
	f.Fit = &enginefile.Fit{
		Estimates: []enginefile.Estimate{
			{Parameter: "step-base", Low: "3.123ms", High: "5ms", Identified: true},
			{Parameter: "decode-engine.decode-table.8", Low: "2ms", High: "3ms"},
		},
		Covariance: enginefile.Covariance{
			Parameters: []string{"step-base", "decode-engine.decode-table.8"},
			Matrix:     [][]float64{{0.01, 0.004}, {0.004, 0.04}},
		},
		Range:      enginefile.Range{ISL: enginefile.Interval{Low: 64, High: 3000}, OSL: enginefile.Interval{Low: 150, High: 150}, Concurrency: enginefile.Interval{Low: 1, High: 128}},
		Errors:     []enginefile.Errors{{Metric: "mean_ttft_ms", HeldOut: true, Rows: 1, Median: 0.02, P90: 0.02, Max: 0.02}},
		Provenance: enginefile.Provenance{Version: "v1", Sources: []enginefile.Source{{Name: "a.csv", SHA256: "abc"}}, Model: "m", Fitted: 2, HeldOut: 1, Excluded: 1},
		Notes:      []string{"Ten prompts per slot are assumed."},
	}
	return f
}

func textOf(t *testing.T, f *enginefile.File) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := f.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A file that is read has the deployment and the fit that were written, to the
// picosecond, and is written as the same bytes.
func TestReadsWhatItWrites(t *testing.T) {
	for name, f := range map[string]*enginefile.File{
		"fitted": fittedFile(), "every setting": enginefile.New(disaggregated()), "defaults": enginefile.New(engine.Default()), "zero": enginefile.New(engine.Deployment{}),
	} {
		path := filepath.Join(t.TempDir(), "engine.json")
		if err := os.WriteFile(path, []byte(textOf(t, f)), 0o644); err != nil {
			t.Fatal(err)
		}
		read, err := enginefile.Read(path)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, textOf(t, f))
		}
		if got, want := read.Deployment(), f.Deployment(); !reflect.DeepEqual(got, want) {
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

// A deployment does not share memory with its file.
func TestDeploymentIsACopy(t *testing.T) {
	f := fittedFile()
	before := textOf(t, f)
	d := f.Deployment()
	d.DecodeEngine.Costs.Decode[1].Cost, d.DecodeEngine.MaxSeqs = 1, 7
	if textOf(t, f) != before {
		t.Error("the file has changed")
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
	f, err := enginefile.Parse([]byte(byHand))
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Deployment{
		Engines: 2, Routing: routing.Prefix, Latency: 17 * time.Millisecond,
		Engine: engine.Config{Costs: engine.Costs{Step: 4200 * engine.Microsecond, ContextToken: 46_700}, NoPrefixCache: true},
	}
	if got := f.Deployment(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Errors name the key, and for damaged JSON the line.
func TestReadErrors(t *testing.T) {
	fitted := textOf(t, fittedFile())
	for _, test := range []struct{ text, from, to, want string }{
		{byHand, `"version": 1`, `"version": 2`, "version: 2 is not known, only 1"},
		{byHand, "moontide engine", "engine", `format: "engine" is not "moontide engine"`},
		{byHand, `"engines": 2`, `"engins": 2`, "deployment.engins: unknown setting; the settings of this section are engines, "},
		{byHand, `"step-base"`, `"engines"`, "engine.engines: unknown setting"},
		{byHand, `"deployment"`, `"deploy"`, `unknown key "deploy"`},
		{byHand, `"engine":`, `"decode-engine":`, `no section "engine"`},
		{byHand, `"4.2ms"`, `4.2`, `engine.step-base: time "4.2": want a number with a unit such as 46.7ns`},
		{byHand, `"4.2ms"`, `"-4.2ms"`, "cost of a step is not from 0 to"},
		{byHand, `"engines": 2`, `"engines": 2.5`, `deployment.engines: "2.5" is not a whole number`},
		{byHand, `"engines": 2`, `"engines": 99999`, "at most 1024"},
		{byHand, `"prefix"`, `"best"`, "deployment.routing: "},
		{byHand, `true`, `"maybe"`, `engine.no-prefix-cache: "maybe" is neither true nor false`},
		{byHand, `"engines": 2,`, `"engines": 2, "engines": 3,`, `two keys "engines"`},
		{byHand, `"engines": 2`, `"engines" 2`, "line 4 is not JSON"},
		{byHand, `"version": 1`, `"version": "1"`, "version is of type string: want number"},
		{byHand, "}\n}", "}", "the JSON is incomplete"},
		{byHand, "}\n}", "}\n} {}", "text after the JSON object"},
		{byHand, `"deployment": {`, `"decode-engine": {"step-base": "1ms"}, "deployment": {`, "decode-engine: the deployment has no decode engines"},
		{fitted, `"parameter": "step-base"`, `"parameter": "step"`, `fit: estimates[0].parameter: "step" is no time of this deployment`},
		{fitted, `"5ms"`, `"5"`, `fit: estimates[0].high: time "5": want a number with a unit`},
		{fitted, `"5ms"`, `"3ms"`, "fit: estimates[0]: low 3.123ms and high 3ms are not an interval"},
		{fitted, "decode-table.8", "decode-table.9", "fit: estimates[1].parameter"},
		{fitted, "0.04]", "-0.04]", "fit: covariance.matrix[1][1]: a negative variance"},
		{fitted, "[0.004, 0.04]", "[0.04]", "fit: covariance.matrix[1]: 1 values for 2 parameters"},
		{fitted, "[0.004, 0.04]", "[0.005, 0.04]", "fit: covariance.matrix[1][0]: 0.005 is not symmetric to 0.004"},
		{fitted, "\"parameters\": [\n        \"step-base\"", "\"parameters\": [\n        \"step-bse\"", `fit: covariance.parameters[0]: "step-bse" is no time`},
		{fitted, `"low": 64`, `"low": 6400`, "fit: range.isl: low 6400 and high 3000 are not an interval"},
		{fitted, `"held_out": true`, `"held_out": 1`, "errors.held_out is of type number: want bool"},
	} {
		text := strings.Replace(test.text, test.from, test.to, 1)
		if text == test.text {
			t.Fatalf("no %q in\n%s", test.from, text)
		}
		if _, err := enginefile.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s -> %s: %v, want %s", test.from, test.to, err, test.want)
		}
	}
	large := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(large, bytes.Repeat([]byte(" "), 5<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := enginefile.Read(large); err == nil || !strings.Contains(err.Error(), large+": more than 4194304 bytes") {
		t.Error(err)
	}
	if _, err := enginefile.Read(large + "x"); err == nil || !strings.Contains(err.Error(), large+"x") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(byHand))
	var b bytes.Buffer
	fittedFile().WriteTo(&b)
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := enginefile.Parse(text)
		if err != nil {
			return
		}
		again, err := enginefile.Parse([]byte(textOf(t, file)))
		if err != nil || !reflect.DeepEqual(again.Deployment(), file.Deployment()) {
			t.Errorf("%s\nis read again as %+v, %v", text, again, err)
		}
	})
}
