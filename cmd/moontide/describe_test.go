package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

// described runs the command line of a description and returns the trace.
func described(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	std := streams{in: strings.NewReader(stdin), out: &out, err: io.Discard}
	app := newApp(std, stop{}, "synth")
	line, err := parseArgs(app, append([]string{"synth"}, args...))
	if err == nil {
		err = app.RunContext(context.Background(), append([]string{appName}, line...))
	}
	return out.String(), err
}

func TestDescribedByFlags(t *testing.T) {
	plain, err := described(t, "", "--isl", "3000", "--osl", "150")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(plain, "\n"); n != 100 {
		t.Errorf("%d rows, want 100", n)
	}
	first, _, _ := strings.Cut(plain, "\n")
	if want := `"input_length": 3000, "output_length": 150, "hash_ids": [0, 1, 2, 3, 4, 5]}`; !strings.HasSuffix(first, want) {
		t.Errorf("the first row is %s, want at its end %s", first, want)
	}
	all, err := described(t, "", "--unique-isl", "normal:100:20:min=10", "--osl", "uniform:1:9", "--correlation", "0.5", "--rate", "4", "--arrival", "gamma",
		"--burstiness", "0.5", "--shared-prompts", "3", "--shared-len", "64", "--zipf", "1", "--turns", "geometric:2", "--think-time", "3s",
		"--new-tokens", "20", "--duration", "1m", "--num-requests", "50", "--seed", "7", "--block-size", "32")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"session_id": "s0"`, `"delay": 3000`, `"context_len": 64`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%.500s", want, all)
		}
	}
	if n := strings.Count(all, "\n"); n != 50 {
		t.Errorf("%d rows, want 50", n)
	}
}

// The help names the gap distribution that applies without --arrival.
func TestDescribedArrivals(t *testing.T) {
	of := func(args ...string) string {
		t.Helper()
		out, err := described(t, "", append([]string{"--isl", "3", "--osl", "1"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if of() != of("--arrival", "poisson") {
		t.Error("arrivals are not Poisson without a word")
	}
	if of("--cv", "2") != of("--cv", "2", "--arrival", "gamma") {
		t.Error("--cv alone is not gamma")
	}
	if of("--burstiness", "0.25") != of("--cv", "2", "--arrival", "gamma") {
		t.Error("--burstiness 1/4 alone is not gamma of CV 2")
	}
	if help := of("--help"); !strings.Contains(strings.Join(strings.Fields(help), " "), "(default: poisson; gamma with --cv or --burstiness") {
		t.Errorf("the help does not say so:\n%s", help)
	}
}

func TestDescribedBySpec(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "mine.yaml", "isl: 17\nosl: 3\nnum_requests: 5\n")
	of := func(stdin string, args ...string) string {
		t.Helper()
		out, err := described(t, stdin, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := of("", "--spec", file)
	if strings.Count(out, `"input_length": 17, "output_length": 3`) != 5 {
		t.Errorf("the description is not drawn:\n%s", out)
	}
	if over := of("", "--spec", file, "--osl", "4", "-n", "2"); strings.Count(over, `"output_length": 4`) != 2 || strings.Count(over, "\n") != 2 {
		t.Errorf("flags do not come over the description:\n%s", over)
	}
	if ready := of("", "--spec", "fixed-512-512", "-n", "3"); strings.Count(ready, `"input_length": 512, "output_length": 512`) != 3 {
		t.Errorf("a ready description:\n%s", ready)
	}
	if piped := of("isl: 5\nosl: 6\n", "--spec", "-"); strings.Count(piped, `"input_length": 5, "output_length": 6`) != 100 {
		t.Errorf("a description from standard input:\n%s", piped)
	}
}

// A shared prefix is shared to its last token, or the rest is reported.
func TestSynthSharesWholePrefixes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shape := []string{"synth", "--isl", "2000", "--osl", "1", "--shared-len", "2000", "-n", "5", "-o", "t.jsonl"}
	if r := try(t, dir, "", shape...); r.status != exitDone || !strings.Contains(r.err, "block size: 500 tokens\n") || strings.Contains(r.err, "note:") {
		t.Errorf("exit status %d\n%s", r.status, r.err)
	}
	if total, hits := blocksIn(t, dir, "t.jsonl"); total != 20 || hits != 16 {
		t.Errorf("%v of %v blocks are hits", hits, total)
	}
	const rounded = "note: only whole blocks are shared: 1,536 of the 2,000 tokens of a shared prefix, on average; a block size that divides the prefixes shares all of them\n"
	if r := try(t, dir, "", append(shape, "--block-size", "512")...); !strings.Contains(r.err, rounded) {
		t.Errorf("in blocks of 512:\n%s", r.err)
	}
	r := try(t, dir, "", "bench", "--isl", "2000", "--osl", "1", "--shared-len", "2000", "--block-size", "512", "--concurrency", "1", "--num-prompts", "2", "--url", serveFast(t), "--out", "sweep")
	if strings.Count(r.err, rounded) != 1 {
		t.Errorf("bench in blocks of 512:\n%s", r.err)
	}
}
