package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// rewritten changes a file in a run's folder.
func rewritten(t *testing.T, path string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A report of an INVALID run exits with status 3, like the run, in every form
// with a verdict, and still prints.
func TestReportOfAnInvalidRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"good", "spoiled"} {
		must(t, dir, "simulate", sample(t), "--out", name)
	}
	rewritten(t, filepath.Join(dir, "spoiled", runfile.RequestsFile), func(text string) string {
		return strings.ReplaceAll(text, `"input_tokens": `, `"input_tokens": 1`)
	})
	for args, want := range map[string]struct {
		status int
		out    string
	}{
		"good":                           {exitDone, "Verdict: VALID"},
		"spoiled":                        {exitInvalid, "Verdict: INVALID"},
		"good spoiled":                   {exitInvalid, "Verdict: VALID"},
		"spoiled --json":                 {exitInvalid, `"verdict": "INVALID"`},
		"spoiled good --csv":             {exitInvalid, "\nspoiled,INVALID,"},
		"spoiled --markdown":             {exitInvalid, "INVALID"},
		"spoiled --format vllm":          {exitInvalid, "Verdict: INVALID"},
		"spoiled --html -":               {exitInvalid, `<h2 class="INVALID">Verdict: INVALID</h2>`},
		"spoiled --format aiperf":        {exitDone, `"time_to_first_token"`},
		"spoiled --max-prompts-off 100%": {exitMisused, ""},
		"spoiled --max-prompts-off 1":    {exitDone, "Verdict: SUSPECT"},
	} {
		r := try(t, dir, "", append([]string{"report"}, strings.Fields(args)...)...)
		if r.status != want.status || !strings.Contains(r.out, want.out) {
			t.Errorf("%s: exit status %d, want %d with %q\n%.1500s%s", args, r.status, want.status, want.out, r.out, r.err)
		}
	}
}

// A folder of another tool, or with too many files missing, is rejected.
func TestReportOfWhatIsNoRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"format": `{"request_throughput": 1.0, "completed": 5}`,
		"list":   `[1, 2]`,
		"cut":    `{"version": "v1", "comm`,
		"null":   `null`,
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), runfile.RunFile, text)
		write(t, filepath.Join(dir, name), runfile.RequestsFile, "")
		if r := try(t, dir, "", "report", name); r.status != exitFailed || r.out != "" || !strings.Contains(r.err, runfile.RunFile) {
			t.Errorf("%s: exit status %d\n%s%s", name, r.status, r.out, r.err)
		}
	}
}
