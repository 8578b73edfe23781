package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/replay/experiment"
	"moontide/replay/runfile"
)

// The report of parts is that of one folder with the same records, except for names,
// notes, and what the parts and the evidence are.
func TestReportOfPartsIsThatOfOneFolder(t *testing.T) {
	t.Parallel()
	const parts, rows = 3, 60
	url, _ := counting(t, 0)
	dir := t.TempDir()
	write(t, dir, "t.jsonl", steadyRows(rows))
	var all []*exec.Cmd
	for i := range parts {
		all = append(all, pod(dir, i, parts, "replay", "t.jsonl", "--url", url, "--part", "auto", "--out", "parts"))
		talks(t, all[i])
	}
	for _, cmd := range all {
		cmd.Wait()
	}
	intoOneFolder(t, filepath.Join(dir, "parts"), filepath.Join(dir, "one"))
	summary := func(folder string) (values map[string]any) {
		if err := json.Unmarshal([]byte(try(t, dir, "", "report", "--json", folder).out), &values); err != nil {
			t.Fatal(err)
		}
		return values
	}
	merged, single := summary("parts"), summary("one")
	if own := merged["moontide"].(map[string]any); merged["completed"] != float64(rows) || len(own["parts"].([]any)) != parts {
		t.Fatalf("the report is not that of %d rows and %d parts: %v", rows, parts, merged)
	}
	if d := cmp.Diff(unlike(single), unlike(merged)); d != "" {
		t.Errorf("the summaries differ:\n%s", d)
	}
}

// intoOneFolder writes the records of all parts of a run into a folder as one process
// would.
func intoOneFolder(t *testing.T, from, to string) {
	t.Helper()
	recording, err := experiment.OpenRecording(from)
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Close()
	info := recording.Run
	info.Part = runfile.Part{}
	folder, err := runfile.Create(to, info)
	if err == nil {
		err = folder.OpenFiles()
	}
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range recording.Records {
		if err == nil {
			err = folder.Record(rec)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for sample, err := range recording.Samples {
		if err == nil {
			err = folder.Sample(sample)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
}

// unlike returns a summary without what differs between parts and one folder.
func unlike(summary map[string]any) map[string]any {
	own := summary["moontide"].(map[string]any)
	for _, name := range []string{"name", "dir", "notes", "parts", "verdict", "evidence"} {
		delete(own, name)
	}
	return summary
}
