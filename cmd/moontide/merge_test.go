package main

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

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
	write(t, dir, "s1.jsonl", `{"timestamp": 0, "input_length": 1, "output_length": 1, "session_id": "s0"}`+"\n")
	write(t, dir, "s2.jsonl", `{"timestamp": 1, "input_length": 1, "output_length": 1, "session_id": "s0"}`+"\n")
	if r := try(t, dir, "", "convert", "s1.jsonl", "s2.jsonl"); r.status != exitMisused || !strings.Contains(r.err, `s2.jsonl:1: session id "s0" is also in s1.jsonl: use --ids`) {
		t.Errorf("sessions: exit status %d\n%s", r.status, r.err)
	}
	if got := must(t, dir, "convert", "--ids", "separate", "s1.jsonl", "s2.jsonl"); !strings.Contains(got, `"s0"`) || !strings.Contains(got, `"s0#2"`) {
		t.Errorf("sessions are\n%s", got)
	}
	if r := try(t, dir, "", "convert", "--ids", "mixed", "s1.jsonl"); r.status != exitMisused || !strings.Contains(r.err, `--ids "mixed" is unknown: use shared or separate`) {
		t.Errorf("exit status %d\n%s", r.status, r.err)
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
