package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"moontide/replay/bench"
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
	reports := func(folder string) (values map[string]any, text, page string) {
		if err := json.Unmarshal([]byte(try(t, dir, "", "report", "--json", folder).out), &values); err != nil {
			t.Fatal(err)
		}
		return values, try(t, dir, "", "report", "--html", folder+".html", folder).out, string(read(t, filepath.Join(dir, folder+".html")))
	}
	merged, mergedText, mergedPage := reports("parts")
	single, singleText, singlePage := reports("one")
	if own := merged["moontide"].(map[string]any); merged["completed"] != float64(rows) || len(own["parts"].([]any)) != parts {
		t.Fatalf("the report is not that of %d rows and %d parts: %v", rows, parts, merged)
	}
	if a, b := unlike(merged), unlike(single); !reflect.DeepEqual(a, b) {
		x, _ := json.MarshalIndent(a, "", " ")
		y, _ := json.MarshalIndent(b, "", " ")
		t.Errorf("the summaries differ:\n%s", difference(string(x), string(y)))
	}
	metrics := func(text string) string { before, _, _ := strings.Cut(text, "\nVerdict: "); return before }
	if d := difference(metrics(mergedText), metrics(singleText)); d != "" {
		t.Errorf("the texts differ:\n%s", d)
	}
	if d := difference(withoutParts(mergedPage), withoutParts(singlePage)); d != "" {
		t.Errorf("the pages differ:\n%s", d)
	}
}

// intoOneFolder writes the records of all parts of a run into a folder as one process
// would.
func intoOneFolder(t *testing.T, from, to string) {
	t.Helper()
	recording, err := bench.OpenRecording(from)
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Close()
	info := recording.Run
	info.Part = runfile.Part{}
	folder, err := runfile.Create(to, info)
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

// withoutParts returns the sections of a page from the metrics on, without that of the
// parts, an element per line.
func withoutParts(page string) (rest string) {
	for _, section := range strings.Split(page, "<h2")[2:] { // after the title and the verdict
		if !strings.HasPrefix(section, ">Parts") {
			rest += strings.ReplaceAll(section, "<", "\n<")
		}
	}
	return rest
}

// difference returns the lines of each text that the other does not have, "" if the
// texts are equal.
func difference(a, b string) (lines string) {
	if a == b {
		return ""
	}
	lines = "lines or their order:\n"
	first, second := strings.Split(a, "\n"), strings.Split(b, "\n")
	for _, line := range first {
		if !slices.Contains(second, line) {
			lines += "- " + line + "\n"
		}
	}
	for _, line := range second {
		if !slices.Contains(first, line) {
			lines += "+ " + line + "\n"
		}
	}
	return lines
}
