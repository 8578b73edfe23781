package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// rowsOf returns rows of a native trace with blocks of one size, the last of
// them cut to the prompt.
func rowsOf(size int) string {
	var b strings.Builder
	for i, isl := range []int{2*size + 1, 3 * size, size} {
		var ids []string
		for id := range (isl + size - 1) / size {
			ids = append(ids, strconv.Itoa(10*i+id))
		}
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": 1, "hash_ids": [%s]}`+"\n", i, isl, strings.Join(ids, ", "))
	}
	return b.String()
}

// Traces with different block sizes cannot be merged, whether a format, a flag
// or the rows give the size.
func TestConvertRefusesBlockSizes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := foreignTraces(t)
	write(t, dir, "512.jsonl", rowsOf(512))
	write(t, dir, "16.jsonl", rowsOf(16))
	write(t, dir, "bare.jsonl", `{"timestamp": 1, "input_length": 70, "output_length": 1}`+"\n")
	write(t, dir, "odd.jsonl", `{"timestamp": 0, "input_length": 70, "output_length": 1, "hash_ids": [1, 2, 3]}`+"\n"+
		`{"timestamp": 0, "input_length": 70, "output_length": 1, "hash_ids": [1]}`+"\n")
	const refused = ": their block ids cannot be merged; --block-size sets the size of traces that do not state one\n"
	for name, tc := range map[string]struct {
		args string
		want string // "": they become one
	}{
		"by their rows":          {"512.jsonl 16.jsonl", "16.jsonl:1: block size is 16 tokens (assumed: every size from 11 to 16 fits), but that of 512.jsonl is 512 tokens (assumed: every size from 342 to 512 fits)"},
		"sorted":                 {"--sort 512.jsonl 16.jsonl", "but that of 512.jsonl is 512 tokens"},
		"spread":                 {"--spread-grid 512.jsonl 16.jsonl", "but that of 512.jsonl is 512 tokens"},
		"the third":              {"bare.jsonl 512.jsonl 16.jsonl", "16.jsonl:1: block size is"},
		"by a format":            {"512.jsonl bailian", "bailian.jsonl:1: block size is 16 tokens (given), but that of 512.jsonl is 512 tokens"},
		"by formats":             {"--recorded-times --sort weka dynamo", "block size is 16 tokens (given), but that of "},
		"by a format and a flag": {"--block-size 512 512.jsonl bailian", "bailian.jsonl:1: block size is 16 tokens (given), but that of 512.jsonl is 512 tokens (given)"},
		"given to rows":          {"--block-ids unique 16.jsonl bare.jsonl", "bare.jsonl:1: block size is 512 tokens (given), but that of 16.jsonl is"},
		"for vLLM":               {"--to vllm 512.jsonl 16.jsonl", "16.jsonl:1: block size is"},
		"one size":               {"--ids shared 512.jsonl 512.jsonl", ""},
		"one size of a format":   {"16.jsonl bailian", ""},
		"without ids":            {"512.jsonl bare.jsonl azure", ""},
		"given the same":         {"--block-ids unique --block-size 16 16.jsonl bare.jsonl bailian azure", ""},
		"as the user says":       {"--ids separate --block-size 16 512.jsonl 16.jsonl", ""},
		"of no one size":         {"odd.jsonl 16.jsonl", "16.jsonl:1: block size is 16 tokens"},
		"which the user names":   {"odd.jsonl 16.jsonl --block-size 16 --ids shared", ""},
		"one trace":              {"512.jsonl --block-size 16", ""},
	} {
		args := append([]string{"convert", "-o", name + ".out"}, strings.Fields(tc.args)...)
		for i, a := range args {
			for short, path := range map[string]string{"bailian": paths["bailian.jsonl"], "weka": paths["weka"], "dynamo": paths["dynamo.jsonl"], "azure": paths["azure2023.csv"]} {
				if a == short {
					args[i] = path
				}
			}
		}
		r := try(t, dir, "", args...)
		switch {
		case tc.want == "" && r.status != exitDone:
			t.Errorf("%s: status %d\n%s", name, r.status, r.err)
		case tc.want != "" && (r.status != exitFailed || !strings.Contains(r.err, tc.want) || !strings.HasSuffix(r.err, refused)):
			t.Errorf("%s: status %d\n%s", name, r.status, r.err)
		}
	}
	if r := try(t, dir, "", "convert", "--block-size", "-1", "16.jsonl"); r.status != exitMisused || !strings.Contains(r.err, "--block-size must be from 0 to") {
		t.Errorf("status %d\n%s", r.status, r.err)
	}
}

// Every verb gives a trace the same ids, whatever its seed: the result is the
// same as for the native trace written by convert.
func TestBlockIDsAreOfTheTrace(t *testing.T) {
	t.Parallel()
	path := foreignTraces(t)["azure2024.csv"]
	for _, way := range []string{"unique"} {
		for _, size := range []string{"16", "512"} {
			t.Run("way="+way+"/size="+size, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				own := []string{"--block-size", size}
				given := append([]string{"--block-ids", way}, own...)
				native := must(t, dir, append([]string{"convert", path, "--seed", "7"}, given...)...)
				write(t, dir, "native.jsonl", native)
				for name, verb := range map[string][]string{
					"convert":  {"convert"},
					"analyze":  {"analyze", "--json"},
					"check":    {"check", "--json"},
					"fit":      {"fit"},
					"synth":    {"synth", "--seed", "3", "--from"},
					"simulate": {"simulate", "--seed", "3", "--out", "run"},
				} {
					got := try(t, dir, "", append(append(verb, path), given...)...)
					got.out += records(t, dir)
					want := try(t, dir, "", append(append(verb, "native.jsonl"), own...)...)
					want.out += records(t, dir)
					if unnamed(got.out) != unnamed(want.out) || got.status != want.status || got.out == "" {
						t.Errorf("%s: status %d\n%s\nand of the native trace %d\n%s", name, got.status, got.out, want.status, want.out)
					}
				}
			})
		}
	}
}

// records takes the record of the run that was made, if one was.
func records(t *testing.T, dir string) string {
	t.Helper()
	run := filepath.Join(dir, "run")
	b, err := os.ReadFile(filepath.Join(run, runfile.RequestsFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(run); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// unnamed returns the output of a verb without the lines that name the trace.
func unnamed(out string) string {
	lines := strings.SplitAfter(out, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, "native.jsonl") || strings.Contains(line, "azure2024.csv")
	}), "")
}
