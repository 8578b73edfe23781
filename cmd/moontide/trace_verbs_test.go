package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

const threeRows = `{"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [1, 2], "model": "m"}
{"timestamp": 1000, "input_length": 1030, "output_length": 1, "hash_ids": [1, 3, 4]}
{"timestamp": 2001, "input_length": 30, "output_length": 0, "hash_ids": [5]}
`

func TestConvert(t *testing.T) {
	t.Parallel()
	row := func(i int) string { return strings.Split(threeRows, "\n")[i] + "\n" }
	at := func(i int, ms string) string {
		return strings.Replace(row(i), `"timestamp": `+[]string{"0", "1000", "2001"}[i], `"timestamp": `+ms, 1)
	}
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"as it is":         {nil, threeRows},
		"flags first":      {[]string{"--take", "1"}, row(0)},
		"window":           {[]string{"--start", "1s", "--end", "2001ms"}, at(1, "0")},
		"speed":            {[]string{"--speed", "4"}, row(0) + at(1, "250") + at(2, "500.25")},
		"rate":             {[]string{"--rate", "8", "--arrival", "constant"}, row(0) + at(1, "125") + at(2, "250")},
		"rate, then speed": {[]string{"--rate", "8", "--arrival", "constant", "--speed", "0.5"}, row(0) + at(1, "250") + at(2, "500")},
		"shard":            {[]string{"--shard", "2/2"}, row(1)},
		"take, then shard": {[]string{"--shard", "2/2", "--take", "2"}, row(1)},
		"rate, then shard": {[]string{"--shard", "2/2", "--rate", "8", "--arrival", "constant"}, at(1, "125")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "t.jsonl", threeRows)
			if got := must(t, dir, append([]string{"convert", "t.jsonl"}, tc.flags...)...); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if got := must(t, dir, append(append([]string{"convert"}, tc.flags...), "t.jsonl")...); got != tc.want {
				t.Errorf("with the flags first:\n%s", got)
			}
		})
	}
}

func TestConvertFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", threeRows)
	must(t, dir, "convert", "t.jsonl", "--shard", "1/2", "-o", "1.jsonl.gz")
	must(t, dir, "convert", "t.jsonl", "--shard", "2/2", "-o", "2.jsonl.zst")
	if got := must(t, dir, "convert", "--ids", "shared", "1.jsonl.gz", "2.jsonl.zst"); got != threeRows {
		t.Errorf("the shards merge to\n%s", got)
	}
	head, err := os.ReadFile(dir + "/1.jsonl.gz")
	if err != nil || !bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		t.Errorf("not gzip: %v", err)
	}
	must(t, dir, "convert", "t.jsonl", "-o", "two.jsonl", "--take", "2")
	if got := must(t, dir, "convert", "two.jsonl"); strings.Count(got, "\n") != 2 {
		t.Errorf("got\n%s", got)
	}
	if r := try(t, dir, threeRows, "convert", "-", "-o", "-"); r.out != threeRows {
		t.Errorf("through pipes: %+v", r)
	}
	backwards := strings.Split(threeRows, "\n")
	write(t, dir, "back.jsonl", backwards[2]+"\n"+backwards[0]+"\n"+backwards[1])
	if got := must(t, dir, "convert", "back.jsonl", "--sort"); got != threeRows {
		t.Errorf("sorted:\n%s", got)
	}
}

func TestSkipBadRows(t *testing.T) {
	t.Parallel()
	text := "oops\n" + threeRows + `{"input_length": -1, "output_length": 1}`
	for _, args := range [][]string{{"convert", "-"}, {"analyze", "--json", "-"}, {"synth", "--from", "-", "-n", "3", "--method", "tree"}, {"replay", "-", "--out", "run"}} {
		r := try(t, t.TempDir(), text, append(args, "--skip-bad-rows")...)
		if !r.measured() || !strings.Contains(r.err, "2 invalid rows skipped\n") || !strings.Contains(r.err, `:1: not a JSON object`) {
			t.Errorf("%v: exit status %d\n%s", args, r.status, r.err)
		}
	}
}

func TestAnalyze(t *testing.T) {
	t.Parallel()
	r := try(t, t.TempDir(), threeRows, "analyze", "-", "--json", "--block-size", "512")
	var got struct {
		Requests  int
		BlockSize int `json:"block_size"`
		Blocks    struct{ Total, Unique int }
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	if got.Requests != 3 || got.Blocks.Total != 6 || got.Blocks.Unique != 5 || got.BlockSize != 512 {
		t.Errorf("got %+v", got)
	}
	if text := try(t, t.TempDir(), threeRows, "analyze", "-"); !strings.HasPrefix(text.out, "DATASET ANALYSIS\n") {
		t.Errorf("got\n%s", text.out)
	}
}

func TestSynth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"sessions":    {"--from", sample(t)},
		"tree":        {"--from", sample(t), "--method", "tree"},
		"description": {"--spec", "agent"},
		"flags":       {"--isl", "lognormal:3000:1", "--osl", "150"},
	} {
		synth := func(more ...string) string {
			return must(t, dir, slices.Concat([]string{"synth", "--num-requests", "40"}, args, more)...)
		}
		one := synth("--seed", "3", "-o", "-")
		synth("--seed", "3", "-o", "out.jsonl.zst")
		if two := must(t, dir, "convert", "out.jsonl.zst"); one != two || strings.Count(one, "\n") != 40 {
			t.Errorf("%s: the same command gave other bytes", name)
		}
		if other := synth("--seed", "4", "-o", "-"); other == one {
			t.Errorf("%s: the seed does not matter", name)
		}
	}
}
