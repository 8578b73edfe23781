package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// Standard output may be the input, too.
func TestStandardOutputIsNotTheInput(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "T")
	trace := read(t, root+"/traces/chat.jsonl")
	write(t, "", path, string(trace))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, args := range [][]string{{"convert", path}, {"convert", path, "-o", "-"}, {"convert", path, "-o", "/dev/stdout"}} {
		cmd := moontide(".", args...)
		cmd.Stdout = file
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != exitMisused {
			t.Errorf("%q: %v", args, err)
		}
	}
	if after, _ := os.ReadFile(path); string(after) != string(trace) {
		t.Error("the input was overwritten")
	}
}

// contents returns the names and contents of all files below a folder.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range files(t, dir) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue
		}
		data := read(t, path)
		b.WriteString(name + "\n" + string(data))
	}
	return b.String()
}

// A reader of the output that ends early loses nothing on disk, and does not change
// the exit status.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[string]int{"0.9": exitDone, "0.000001": exitInvalid} {
		dir := t.TempDir()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		// A closed loop of one in virtual time; some requests fail if the engine's
		// cache is too small for them.
		trace := filepath.Join(dir, "T")
		rows := `{"timestamp":0,"input_length":100,"output_length":1,"hash_ids":[1]}` + "\n" + `{"timestamp":1,"input_length":100000,"output_length":1,"hash_ids":[2]}` + "\n"
		write(t, "", trace, rows)
		cmd := moontide(dir, "simulate", "--block-size", "100000", "--num-gpu-blocks", "100", "--verdict", "failed="+verdict, "--out", "run", trace)
		cmd.Stdout = w
		cmd.Run()
		w.Close()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("exit status %d, want %d", got, want)
		}
		for _, name := range []string{runfile.SummaryFile, runfile.PageFile} {
			if _, err := os.Stat(filepath.Join(dir, "run", name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
