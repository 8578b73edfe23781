package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"moontide/replay/runfile"
	"moontide/trace/tracetest"
)

const threeRows = `{"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [1, 2], "model": "m"}
{"timestamp": 1000, "input_length": 1030, "output_length": 1, "hash_ids": [1, 3, 4]}
{"timestamp": 2001, "input_length": 30, "output_length": 0, "hash_ids": [5]}
`

// ready returns the path of a trace in traces/.
func ready(t *testing.T, name string) string {
	t.Helper()
	return absolute(t, root+"/traces/"+name)
}

// blocksIn returns the blocks of a trace, and its hits in an infinite cache.
func blocksIn(t *testing.T, dir, path string) (total, hits float64) {
	t.Helper()
	var got struct {
		Blocks struct{ Total, Unique float64 }
	}
	if err := json.Unmarshal([]byte(must(t, dir, "analyze", "--json", path)), &got); err != nil {
		t.Fatal(err)
	}
	return got.Blocks.Total, got.Blocks.Total - got.Blocks.Unique
}

// Two traces whose ids both start at 0 are merged only if the user says what equal
// ids mean, wherever they come from.
func TestConvertAsksWhatEqualIDsMean(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := ready(t, "conversation.jsonl"), ready(t, "shared-prefix.jsonl")
	must(t, dir, "convert", b, "-o", "b.jsonl.gz")
	must(t, dir, "convert", b, "-o", "b.jsonl.zst")
	piped := read(t, b)
	for _, second := range []string{b, "b.jsonl.gz", "b.jsonl.zst", "-"} {
		r := try(t, dir, string(piped), "convert", a, second, "-o", "refused.jsonl")
		want := "is also in " + a + ": use --ids shared if equal ids are equal prompts and sessions (parts of one trace), or --ids separate if they are not"
		if r.status != exitMisused || !strings.Contains(r.err, want) || !strings.Contains(r.err, "block id 0 ") {
			t.Errorf("%s: exit status %d\n%s", second, r.status, r.err)
		}
		if _, err := os.Stat(dir + "/refused.jsonl"); err == nil {
			t.Errorf("%s: a file is left", second)
		}
		if r := try(t, dir, string(piped), "convert", "--ids", "separate", a, second, "-o", "separate.jsonl"); r.status != exitDone {
			t.Fatalf("%s: exit status %d\n%s", second, r.status, r.err)
		}
		totalA, hitsA := blocksIn(t, dir, a)
		totalB, hitsB := blocksIn(t, dir, b)
		if total, hits := blocksIn(t, dir, "separate.jsonl"); total != totalA+totalB || hits != hitsA+hitsB {
			t.Errorf("%s: %v of %v blocks are hits; %v of %v and %v of %v were", second, hits, total, hitsA, totalA, hitsB, totalB)
		}
	}
	must(t, dir, "convert", "--ids", "shared", a, b, "-o", "shared.jsonl")
	_, hits := blocksIn(t, dir, "shared.jsonl")
	if _, separate := blocksIn(t, dir, "separate.jsonl"); hits <= separate {
		t.Errorf("%v hits with shared ids, %v with separate ones", hits, separate)
	}
}

// The shards are the rows of one schedule, also with other flags.
func TestShardsAreThePartsOfOneSchedule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, flags := range [][]string{
		{ready(t, "conversation.jsonl"), "--rate", "7", "--seed", "3"},
		{ready(t, "agent.jsonl"), "--rate", "40", "--limit", "61"},
		{ready(t, "chat.jsonl"), "--ramp", "10m", "--speedup", "2", "--limit", "50"},
		{ready(t, "chat.jsonl"), "--sample", "0.7", "--start", "30s", "--rate", "3", "--arrival", "gamma", "--burstiness", "0.3"},
		{foreignTraces(t)["weka"], "--rate", "2"},
	} {
		whole := strings.SplitAfter(must(t, dir, append([]string{"convert"}, flags...)...), "\n")
		var parts []string
		for _, shard := range []string{"1/3", "2/3", "3/3"} {
			part := try(t, dir, "", append([]string{"convert", "--shard", shard}, flags...)...)
			lines := strings.SplitAfter(part.out, "\n")
			at := 0
			for _, line := range lines {
				for at < len(whole) && whole[at] != line {
					at++
				}
			}
			if at == len(whole) {
				t.Errorf("%v: shard %s is not in the order of the whole", flags, shard)
			}
			parts = append(parts, lines[:len(lines)-1]...)
		}
		slices.Sort(parts)
		sorted := slices.Sorted(slices.Values(whole[:len(whole)-1]))
		if !slices.Equal(parts, sorted) {
			t.Errorf("%v: the shards have %d rows, the whole %d, or they differ", flags, len(parts), len(sorted))
		}
	}
}

// Hashes become small ids in order of first use, with the same sharing.
func TestConvertRenumbersHashes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"weka", "dynamo.jsonl", "bailian.jsonl"} {
		path := foreignTraces(t)[name]
		next, out := 0.0, must(t, dir, "convert", path)
		for line := range strings.Lines(out) {
			var row struct {
				HashIDs []float64 `json:"hash_ids"`
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			for _, id := range row.HashIDs {
				if id > next || id != math.Trunc(id) {
					t.Fatalf("%s: id %v is used before %v", name, id, next)
				}
				next = max(next, id+1)
			}
		}
		write(t, dir, "dense.jsonl", out)
		total, hits := blocksIn(t, dir, path)
		if denseTotal, denseHits := blocksIn(t, dir, "dense.jsonl"); next == 0 || total != denseTotal || hits != denseHits {
			t.Errorf("%s: %v of %v blocks are hits, %v of %v when converted", name, hits, total, denseHits, denseTotal)
		}
	}
}

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

// An anonymized trace has the lengths, hit rates, curves and sessions of the trace, from
// its first arrival on.
func TestAnonymizedTraceIsAnalyzedAlike(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"traces/conversation.jsonl", "traces/agent.jsonl", "traces/chat.jsonl", "trace/format/testdata/weka", "trace/format/testdata/tracelab.jsonl"} {
		path := absolute(t, root+"/"+name)
		first := regexp.MustCompile(`"timestamp": ([0-9.]+)`).FindStringSubmatch(must(t, dir, "convert", path))[1]
		must(t, dir, "convert", path, "--start", first+"ms", "-o", "before.jsonl")
		must(t, dir, "convert", "--anonymize", path, "-o", "after.jsonl.zst")
		before, after := analysisOf(t, dir, "before.jsonl"), analysisOf(t, dir, "after.jsonl.zst")
		noIDs := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == `["id"]` }, cmp.Ignore())
		if d := cmp.Diff(before, after, noIDs, cmpopts.EquateApprox(1e-9, 1e-9)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		must(t, dir, "check", "after.jsonl.zst")
	}
}

// Without a key, one is made that only its owner may read; an anonymized trace has one that
// nobody keeps.
func TestConvertMakesKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := absolute(t, root+"/trace/format/testdata/litellm.jsonl")
	one, other := must(t, dir, "convert", "--anonymize", log), must(t, dir, "convert", "--anonymize", log)
	if other == one || len(files(t, dir)) > 0 {
		t.Error("a key is kept")
	}
	own := must(t, dir, "convert", log, "--key", "own.key")
	if must(t, dir, "convert", log, "-o", "t.jsonl"); readFile(t, dir+"/t.jsonl") == own {
		t.Error("two keys give the same ids")
	}
	for _, name := range []string{"own.key", "capture.key"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info, err)
		}
	}
}
