package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/trace/format"
)

// A model replaces its trace: drawing from either gives the same result,
// wherever the model is stored.
func TestModelStandsForItsTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := must(t, dir, "synth", "--from", sample(t), "-n", "300", "--seed", "7")
	must(t, dir, "fit", sample(t), "-o", "m.json")
	if got := must(t, dir, "synth", "--from", "m.json", "-n", "300", "--seed", "7"); got != want {
		t.Error("the model's file draws another trace than the trace")
	}
	model := must(t, dir, "fit", sample(t))
	if r := try(t, dir, model, "synth", "--from", "-", "-n", "300", "--seed", "7"); r.status != exitDone || r.out != want {
		t.Errorf("from standard input the model draws another trace: exit status %d, %s", r.status, r.err)
	}
	if got := must(t, dir, "synth", "--from", "m.json", "--seed", "7"); strings.Count(got, "\n") != 100 {
		t.Errorf("%d rows without --num-requests, want as many as the source has", strings.Count(got, "\n"))
	}
	if got := must(t, dir, "synth", "--from", "m.json", "-n", "300", "--seed", "8"); got == want {
		t.Error("another seed draws the same trace")
	}
}

func TestSynthSpeed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "fit", sample(t), "-o", "m.json")
	span := func(args ...string) float64 {
		text := must(t, dir, append([]string{"synth", "--from", "m.json", "-n", "2000"}, args...)...)
		r, err := format.NewReader(strings.NewReader(text), "", format.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := trace.Collect(r.Requests())
		if err != nil {
			t.Fatal(err)
		}
		return rows[len(rows)-1].Timestamp.Value - rows[0].Timestamp.Value
	}
	plain := span()
	if fast := span("--speedup-ratio", "4"); fast != plain/4 {
		t.Errorf("at --speedup-ratio 4 the trace lasts %v ms, want a quarter of %v", fast, plain)
	}
	if busy := span("--rate-multiplier", "4"); busy < plain/5 || busy > plain/3 {
		t.Errorf("at --rate-multiplier 4 the trace lasts %v ms, want about a quarter of %v", busy, plain)
	}
}

// --check compares equal numbers of requests and does not mix with the trace's
// output.
func TestSynthCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, method := range []string{"sessions", "tree"} {
		args := []string{"synth", "--from", sample(t), "-n", "30", "--method", method, "--check"}
		piped := try(t, dir, "", append(args, "-o", "-")...)
		if piped.status != exitDone || strings.Count(piped.out, "\n") != 30 || !strings.Contains(piped.err, "LRU curve, mean gap") {
			t.Errorf("%s: exit status %d, %d rows, talk:\n%s", method, piped.status, strings.Count(piped.out, "\n"), piped.err)
		}
		filed := try(t, dir, "", append(args, "-o", method+".jsonl")...)
		if filed.status != exitDone || !regexp.MustCompile(`requests +100 +100\n`).MatchString(filed.out) {
			t.Errorf("%s: exit status %d, printed:\n%s%s", method, filed.status, filed.out, filed.err)
		}
	}
}

func TestFitMisuse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "fit", sample(t), "-o", "m.json")
	model, err := os.ReadFile(filepath.Join(dir, "m.json"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "broken.json", strings.Replace(string(model), `"requests":100`, `"requests":-1`, 1))
	write(t, dir, "few.jsonl", `{"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [1]}`+"\n")
	for name, test := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"nothing to fit":       {[]string{"fit"}, exitMisused, "missing argument: TRACE"},
		"no such trace":        {[]string{"fit", "none.jsonl"}, exitFailed, "none.jsonl: no such file"},
		"a folder":             {[]string{"fit", "."}, exitFailed, "opening trace: . is a folder"},
		"too few requests":     {[]string{"fit", "few.jsonl"}, exitFailed, "few.jsonl: "},
		"a broken model":       {[]string{"synth", "--from", "broken.json"}, exitFailed, "broken.json: reading a model: requests: "},
		"block size of model":  {[]string{"synth", "--from", "m.json", "--block-size", "16"}, exitMisused, "--block-size has no effect on a model: the block size of m.json is 512 tokens"},
		"a knob of the tree":   {[]string{"synth", "--from", "m.json", "--max-isl", "5"}, exitMisused, "--max-isl only works with --method tree"},
		"the tree of a model":  {[]string{"synth", "--from", "m.json", "--method", "tree", "-n", "5"}, exitFailed, "m.json is a model for --method sessions"},
		"no rate":              {[]string{"synth", "--from", "m.json", "--rate-multiplier", "0"}, exitMisused, "--rate-multiplier must be positive: 0"},
		"no speed":             {[]string{"synth", "--from", "m.json", "--speedup-ratio=-2"}, exitMisused, "--speedup-ratio must be positive: -2"},
		"no requests":          {[]string{"synth", "--from", "m.json", "-n", "0"}, exitMisused, "--num-requests must be positive: 0"},
		"check without source": {[]string{"synth", "--from", "m.json", "--check"}, exitMisused, "synth: m.json is a model; --check needs a trace"},
		"a model, fitted":      {[]string{"fit", "m.json"}, exitFailed, "moontide: m.json is already a model"},
		"check of a pipe":      {[]string{"synth", "--from", "-", "--check"}, exitMisused, "--check reads the source twice: use a file"},
		"check of description": {[]string{"synth", "--isl", "30", "--osl", "3", "--check"}, exitMisused, "--check makes a trace from another one"},
		"rate of description":  {[]string{"synth", "--isl", "30", "--osl", "3", "--rate-multiplier", "3"}, exitMisused, "--rate-multiplier"},
		"rate of the tree":     {[]string{"synth", "--from", sample(t), "--method", "tree", "-n", "5", "--rate-multiplier", "3"}, exitMisused, "--rate-multiplier only works with --method sessions"},
	} {
		t.Run(name, func(t *testing.T) {
			r := try(t, dir, "", test.args...)
			if r.status != test.status || !strings.Contains(r.err, test.says) {
				t.Errorf("exit status %d, want %d; talk, want %q in it:\n%s", r.status, test.status, test.says, r.err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "few.json")); err == nil {
		t.Error("a file was left")
	}
}
