package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"moontide/replay/runfile"
	"moontide/trace/tracetest"
)

// foreignTraces holds small traces of each format, by name.
func foreignTraces(t *testing.T) map[string]string {
	t.Helper()
	paths := map[string]string{}
	for _, name := range []string{"azure2023.csv", "azure2024.csv", "burstgpt.csv", "burstgpt3.csv", "vidur.csv", "bailian.jsonl", "weka", "dynamo.jsonl", "aiperf.jsonl", "sharegpt.json", "tracelab.jsonl"} {
		paths[name] = absolute(t, filepath.Join(root, "trace", "format", "testdata", name))
	}
	return paths
}

// analysisOf returns the output of analyze without the trace's name.
func analysisOf(t *testing.T, dir, path string, flags ...string) map[string]any {
	t.Helper()
	var a map[string]any
	out := must(t, dir, append([]string{"analyze", "--json", path}, flags...)...)
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	delete(a, "trace")
	return a
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every verb treats a foreign trace like the native one that convert writes.
func TestEveryVerbReadsEveryFormat(t *testing.T) {
	t.Parallel()
	for name, path := range foreignTraces(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must(t, dir, "convert", path, "-o", "native.jsonl")
			if out, own := must(t, dir, "convert", path), must(t, dir, "convert", "native.jsonl"); out != own {
				t.Errorf("converted again it is\n%s\nand not\n%s", own, out)
			}
			// A native trace does not state its block size.
			size := []string{"--block-size", map[string]string{"bailian.jsonl": "16", "weka": "64", "dynamo.jsonl": "16", "tracelab.jsonl": "64"}[name]}
			if size[1] == "" {
				size = nil
			}
			if got, want := asJSON(t, analysisOf(t, dir, path)["isl"]), asJSON(t, analysisOf(t, dir, "native.jsonl", size...)["isl"]); got != want {
				t.Errorf("analyze: %s\nand of the native trace\n%s", got, want)
			}
			if got, want := asJSON(t, analysisOf(t, dir, path)["blocks"]), asJSON(t, analysisOf(t, dir, "native.jsonl", size...)["blocks"]); got != want {
				t.Errorf("analyze: %s\nand of the native trace\n%s", got, want)
			}
			check, native := try(t, dir, "", "check", "--json", path), try(t, dir, "", append([]string{"check", "--json", "native.jsonl"}, size...)...)
			var a, b struct{ Findings []struct{ Kind string } }
			if json.Unmarshal([]byte(check.out), &a) != nil || json.Unmarshal([]byte(native.out), &b) != nil {
				t.Fatalf("check prints\n%s%s", check.out, check.err)
			}
			if check.status != native.status || !slices.Equal(a.Findings, b.Findings) {
				t.Errorf("check: %d, %v; and of the native trace %d, %v", check.status, a.Findings, native.status, b.Findings)
			}
			flags := append([]string{"--speedup", "1000"}, size...)
			must(t, dir, append([]string{"simulate", path, "--out", "a"}, flags...)...)
			must(t, dir, append([]string{"simulate", "native.jsonl", "--out", "b"}, flags...)...)
			one, errOne := os.ReadFile(filepath.Join(dir, "a", runfile.RequestsFile))
			two, errTwo := os.ReadFile(filepath.Join(dir, "b", runfile.RequestsFile))
			if errOne != nil || errTwo != nil || sameSharing(string(one)) != sameSharing(string(two)) {
				t.Errorf("simulate records\n%s\nand of the native trace\n%s", one, two)
			}
		})
	}
}

// sameSharing replaces the block ids in JSON lines by their order of first use:
// convert renumbers those that are hashes.
func sameSharing(text string) string {
	numbers := map[string]string{}
	return regexp.MustCompile(`"hash_ids": \[[0-9, ]+\]`).ReplaceAllStringFunc(text, func(list string) string {
		return regexp.MustCompile("[0-9]+").ReplaceAllStringFunc(list, func(id string) string {
			if _, known := numbers[id]; !known {
				numbers[id] = strconv.Itoa(len(numbers))
			}
			return numbers[id]
		})
	})
}

// A verb reports what was read, dropped and assumed, except for the native
// format.
func TestNotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := foreignTraces(t)
	for _, args := range [][]string{{"analyze"}, {"check"}, {"convert"}, {"simulate", "--speedup", "1000"}} {
		r := try(t, dir, "", append(args, paths["burstgpt.csv"])...)
		for _, want := range []string{"moontide: burstgpt.csv: trace format: burstgpt\n", "moontide: burstgpt.csv: rows left out, without response tokens (the request failed): 1\n"} {
			if strings.Count(r.err, want) != 1 {
				t.Errorf("%s says\n%s", args[0], r.err)
			}
		}
	}
	if r := try(t, dir, "", "convert", sample(t)); r.err != "" {
		t.Errorf("of the native format it says\n%s", r.err)
	}
}

func TestFormatFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := foreignTraces(t)
	write(t, dir, "t.jsonl", "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 3}\n{\"timestamp\": 1, \"input_length\": 30, \"output_length\": 3}\n")
	if got, want := must(t, dir, "convert", "--block-ids", "unique", "t.jsonl"), `{"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [4503599627370496, 4503599627370497]}
{"timestamp": 1, "input_length": 30, "output_length": 3, "hash_ids": [4503599627370498]}
`; got != want {
		t.Errorf("unique ids:\n%s", got)
	}
	if got := must(t, dir, "convert", "--recorded-times", paths["weka"]); strings.Contains(got, `"delay"`) || strings.Count(got, `"timestamp"`) != 10 {
		t.Errorf("recorded times:\n%s", got)
	}
}

// vLLM's timed_trace has seconds and no keys that vLLM does not read. Blocks
// without ids in a conversation are covered.
func TestConvertToVLLM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := foreignTraces(t)
	r := try(t, dir, "", "convert", "--to", "vllm", paths["weka"], "--limit", "3")
	if want := `{"timestamp": 0, "input_length": 150, "output_length": 20, "hash_ids": [`; r.status != 0 || !strings.HasPrefix(r.out, want) {
		t.Fatalf("status %d\n%s%s", r.status, r.out, r.err)
	}
	for i, line := range strings.Split(strings.TrimSpace(r.out), "\n") {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		want := []struct {
			at  float64
			ids int
		}{{0, 3}, {0, 2}, {5, 4}}[i]
		if len(row) != 4 || row["timestamp"] != want.at || len(row["hash_ids"].([]any)) != want.ids {
			t.Errorf("row %d is %s", i+1, line)
		}
	}
	if want := "vllm bench serve --dataset-name timed_trace --self-timed --timed-trace-chunk-hash-size 64\n"; !strings.Contains(r.err, want) {
		t.Errorf("it says\n%s", r.err)
	}
	for _, name := range []string{"azure2024.csv", "burstgpt.csv", "vidur.csv", "dynamo.jsonl", "bailian.jsonl"} {
		out := must(t, dir, "convert", "--to", "vllm", "--block-ids", "unique", paths[name])
		seconds := must(t, dir, "convert", "--recorded-times", "--speedup", "1000", paths[name])
		for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
			var a, b struct{ Timestamp *float64 }
			if json.Unmarshal([]byte(line), &a) != nil || json.Unmarshal([]byte(strings.Split(seconds, "\n")[i]), &b) != nil || *a.Timestamp != *b.Timestamp {
				t.Errorf("%s: row %d is %s", name, i+1, line)
			}
		}
	}
}

// Input that cannot be read twice is supported.
func TestFormatsOnStandardInput(t *testing.T) {
	t.Parallel()
	for name, path := range foreignTraces(t) {
		if name == "weka" {
			path = filepath.Join(path, "agent.json")
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text := read(t, path)
			want := must(t, dir, "convert", path)
			if r := try(t, dir, string(text), "convert", "-"); r.status != 0 || r.out != want {
				t.Errorf("status %d\n%s%s", r.status, r.out, r.err)
			}
			for _, args := range [][]string{{"simulate", "-", "--speedup", "1000"}, {"analyze", "-"}, {"check", "-"}} {
				if r := try(t, dir, string(text), args...); r.out == "" {
					t.Errorf("%v: status %d\n%s", args, r.status, r.err)
				}
			}
		})
	}
}

// The public traces go through the verbs.
func TestPublishedTracesOfOthers(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]int{"AzureLLMInferenceTrace_conv.csv": 19366, "dynamo_pi_request_trace.jsonl.gz": 17, "weka": 6} {
		path := absolute(t, tracetest.Published(t, name))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if a := analysisOf(t, dir, path); a["requests"] != float64(rows) {
				t.Errorf("%v requests", a["requests"])
			}
			must(t, dir, "check", path)
			must(t, dir, "fit", path, "-o", "model")
			must(t, dir, "simulate", path, "--out", "run")
			if out := must(t, dir, "synth", "--from", path, "-n", "20"); strings.Count(out, "\n") != 20 {
				t.Errorf("synth\n%s", out)
			}
			if got := must(t, dir, "synth", "--from", "model", "-n", "20"); got != must(t, dir, "synth", "--from", path, "-n", "20") {
				t.Error("the model draws another trace")
			}
			if strings.HasPrefix(name, "Azure") {
				return // its requests share nothing known
			}
			must(t, dir, "synth", "--method", "tree", "--from", path, "-n", "5", "-o", "tree")
		})
	}
}

// A folder's digest covers the names and contents of the files it is read from.
func TestFolderDigest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mkdir(t, dir, "w")
	text := func(n string) string {
		return `{"id": "c", "block_size": 64, "requests": [{"t": 0, "in": ` + n + `, "out": 2, "hash_ids": []}]}`
	}
	digest := func() string {
		t.Helper()
		must(t, dir, "simulate", "w", "--out", "run")
		run := runOfFolder(t, filepath.Join(dir, "run"))
		if err := os.RemoveAll(filepath.Join(dir, "run")); err != nil || run.Trace.BlockSize != 64 || run.Trace.Name != "w" {
			t.Errorf("%+v, %v", run.Trace, err)
		}
		return run.Trace.SHA256
	}
	write(t, dir, "w/a.json", text("10"))
	first := digest()
	write(t, dir, "w/notes.txt", "not read")
	if digest() != first {
		t.Error("a file that is not read changes the digest")
	}
	write(t, dir, "w/a.json", text("11"))
	second := digest()
	if err := os.Rename(filepath.Join(dir, "w", "a.json"), filepath.Join(dir, "w", "b.json")); err != nil {
		t.Fatal(err)
	}
	if third := digest(); first == second || second == third {
		t.Errorf("digests %s, %s, %s", first, second, third)
	}
}
