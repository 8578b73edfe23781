package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// Selected by name, the tree method writes the file name that users of the data
// generator expect, wherever its source is.
func TestSynthTreeNamesItsFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		args   []string
		want   string
	}{
		"nothing asked for": {"t.jsonl", nil, "t_synth_1.00x1+1.00_speedup1_maxislNone.jsonl"},
		"as published": {"conversation_trace.jsonl", []string{"--prefix-len-multiplier", "16", "--prompt-len-multiplier", "10", "--max-isl", "110000"},
			"conversation_trace_synth_16.00x1+10.00_speedup1_maxisl110000.jsonl"},
		"fractions": {"some.old.trace.jsonl.gz", []string{"--prefix-len-multiplier", "1.5", "--prefix-root-multiplier", "3", "--speedup-ratio", "2.5"},
			"some.old.trace_synth_1.50x3+1.00_speedup2.5_maxislNone.jsonl"},
		"no ending": {"source", nil, "source_synth_1.00x1+1.00_speedup1_maxislNone.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, dir := t.TempDir(), t.TempDir()
			shared(t, from, c.source) // the format is detected from content, not the name
			args := append([]string{"synth", "--method", "tree", "--from", filepath.Join(from, c.source), "-n", "20"}, c.args...)
			r := try(t, dir, "", args...)
			if r.status != exitDone || r.out != "" || !strings.Contains(r.err, "20 requests written to "+c.want+"\n") {
				t.Errorf("%+v", r)
			}
			if got := files(t, dir); !slices.Equal(got, []string{c.want}) {
				t.Fatalf("files %q, want %q", got, c.want)
			}
			file, err := os.ReadFile(filepath.Join(dir, c.want))
			if err != nil {
				t.Fatal(err)
			}
			if out := must(t, dir, append(args, "-o", "-")...); out != string(file) {
				t.Error("-o - writes something else")
			}
		})
	}
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

// The reported rejections and the remaining rate are correct.
func TestSynthTreeSaysWhatWasRejected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shared(t, dir, "t.jsonl") // three requests a second
	synth := func(args ...string) (rows []trace.Request, talk string) {
		r := try(t, dir, "", append([]string{"synth", "--method", "tree", "--from", "t.jsonl", "-n", "3000", "-o", "-"}, args...)...)
		in, err := format.NewReader(strings.NewReader(r.out), "synth", format.Options{})
		if err != nil || r.status != exitDone {
			t.Fatalf("%v: %+v", err, r)
		}
		if rows, err = trace.Collect(in.Requests()); err != nil || len(rows) != 3000 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		return rows, r.err
	}
	all, talk := synth()
	if strings.Contains(talk, "rejected") {
		t.Errorf("nothing was asked for, and it says\n%s", talk)
	}
	rate := func(rows []trace.Request) float64 {
		return float64(len(rows)) / rows[len(rows)-1].Timestamp.Value * 1000
	}
	for _, c := range []struct {
		args  []string
		ratio float64 // of the rate to the source's
		says  string
	}{
		{[]string{"--max-isl", "1024", "--min-isl", "1024"}, .2, " drawn requests rejected by --min-isl and --max-isl; the rate drops from 3"},
		{[]string{"--max-isl", "1024", "--min-isl", "1024", "--keep-rate"}, 1, "; the others arrive at "},
		{[]string{"--max-isl", "1024"}, .3, " drawn requests rejected by --max-isl; the rate drops from 3"},
		{[]string{"--min-isl", "1024"}, 0.8, " drawn requests rejected by --min-isl; the rate drops from 3"},
	} {
		rows, talk := synth(c.args...)
		for _, r := range rows {
			if long, short := r.InputLength > 1024, r.InputLength < 1024; long && slices.Contains(c.args, "--max-isl") || short && slices.Contains(c.args, "--min-isl") {
				t.Fatalf("%v: ISL %d", c.args, r.InputLength)
			}
		}
		got := rate(rows)
		if ratio := got / rate(all); ratio < .8*c.ratio || ratio > 1.2*c.ratio {
			t.Errorf("%v: rate %v, was %v", c.args, got, rate(all))
		}
		if left := strconv.FormatFloat(got, 'f', 2, 64); !strings.Contains(talk, c.says) || !strings.Contains(talk, left) {
			t.Errorf("%v: a rate of %s is left; it says\n%s", c.args, left, talk)
		}
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
