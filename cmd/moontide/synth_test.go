package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/trace/format"
)

// shared writes a trace of prompts of 1 to 6 blocks with a common beginning.
func shared(t *testing.T, dir, name string) {
	t.Helper()
	var rows []byte
	for i := range uint64(60) {
		ids := []uint64{0, 1, 2, 3, 4}[:1+i%5]
		if i%2 == 0 {
			ids = append(slices.Clone(ids), 100+i)
		}
		rows = append(format.AppendRow(rows, trace.Request{
			Timestamp: trace.Some(float64(i / 3 * 1000)), InputLength: len(ids) * 512, OutputLength: 10 + int(i), HashIDs: ids,
		}), '\n')
	}
	write(t, dir, name, string(rows))
}

// synth | analyze - is one pipe.
func TestSynthIntoAnalyze(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shared(t, dir, "t.jsonl")
	out := must(t, dir, "synth", "--method", "tree", "--from", "t.jsonl", "-n", "500", "--prefix-len-multiplier", "2", "-o", "-")
	r := try(t, dir, out, "analyze", "-", "--json")
	var got struct {
		Requests int
		Context  struct {
			Declared float64 `json:"declared_mean"`
		}
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Requests != 500 || got.Context.Declared < 1024 {
		t.Errorf("%+v, %v\n%s", got, err, r.err)
	}
}

// An invalid parameter is reported with its value and limits before anything is
// written.
func TestSynthTreeMisuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown method":   {[]string{"--method", "magic"}, `--method "magic" is unknown: use sessions or tree`},
		"no prefixes":      {[]string{"--prefix-len-multiplier", "0"}, "--prefix-len-multiplier must be positive: 0"},
		"minus nothing":    {[]string{"--osl-multiplier", "-0"}, "--osl-multiplier must be positive: -0"},
		"no roots":         {[]string{"--prefix-root-multiplier", "0"}, "--prefix-root-multiplier must be positive: 0"},
		"half a root":      {[]string{"--prefix-root-multiplier", "1.5"}, `--prefix-root-multiplier "1.5" is not a whole number`},
		"no limit":         {[]string{"--max-isl", "0"}, "--max-isl must be positive: 0"},
		"negative prompts": {[]string{"--prompt-len-multiplier", "-2"}, "--prompt-len-multiplier must be positive: -2"},
		"no number":        {[]string{"--osl-multiplier", "NaN"}, "--osl-multiplier must be positive: NaN"},
		"endless":          {[]string{"--speedup-ratio", "Inf"}, "--speedup-ratio must be positive: +Inf"},
		"upside down":      {[]string{"--min-isl", "9", "--max-isl", "8"}, "--min-isl 9 is above --max-isl 8"},
		"outputs too":      {[]string{"--min-osl", "9", "--max-osl", "8"}, "--min-osl 9 is above --max-osl 8"},
		"nothing fits":     {[]string{"--max-isl", "511"}, "--max-isl 511 fits no request: the shortest prompt has 512 tokens"},
		"nothing between":  {[]string{"--min-isl", "513", "--max-isl", "1023"}, "--max-isl 1023 with --min-isl 513 fits no request"},
		"too long":         {[]string{"--prefix-len-multiplier", "1e7"}, "--prefix-len-multiplier 1e+07 makes prompts of up to 25600000512 tokens; at most 100000000 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			shared(t, dir, "t.jsonl")
			r := try(t, dir, "", append([]string{"synth", "--method", "tree", "--from", "t.jsonl", "-n", "9", "-o", "out.jsonl"}, c.args...)...)
			if r.status != exitMisused || !strings.Contains(r.err, c.want) || r.out != "" {
				t.Errorf("%+v\nwant %q", r, c.want)
			}
			if got := files(t, dir); !slices.Equal(got, []string{"t.jsonl"}) {
				t.Errorf("files %q", got)
			}
		})
	}
}
