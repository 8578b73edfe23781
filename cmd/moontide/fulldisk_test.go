//go:build unix

package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// onSmallDisk runs a command that cannot write files of more than 8 KiB, as on
// a full disk.
func onSmallDisk(t *testing.T, dir string, args ...string) (talk string, status int) {
	r := finish(t, limited(moontide(dir, args...), "-f 16"))
	return r.err, r.status
}

// If the record cannot be written, sending stops and lost records are counted;
// on a larger disk the run resumes, and every row is recorded once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const rows = 200
	write(t, dir, "t.jsonl", strings.Repeat(`{"timestamp": 0, "input_length": 5, "output_length": 2}`+"\n", rows))
	endpoint := newMoodyEndpoint(t, func(bool, int) (int, string) { return http.StatusOK, "" })
	talk, status := onSmallDisk(t, dir, "replay", "t.jsonl", "--url", endpoint.URL, "--closed", "--max-concurrency", "2", "--out", "run")
	lost := regexp.MustCompile(`recording row \d+: write \S+: .*: (\d+) finished requests are not in the record`).FindStringSubmatch(talk)
	if status != exitFailed || lost == nil {
		t.Fatalf("exit status %d\n%s", status, talk)
	}
	unrecorded, _ := strconv.Atoi(lost[1])
	folder := filepath.Join(dir, "run")
	run, recorded := runOfFolder(t, folder), linesOf(t, filepath.Join(folder, runfile.RequestsFile))
	endpoint.mu.Lock()
	sent := endpoint.asked[false]
	endpoint.mu.Unlock()
	if run.Sent != sent || recorded+unrecorded != sent || run.Sent+run.NotSent != rows || run.NotSent == 0 || recorded < 5 || unrecorded == 0 {
		t.Errorf("%d requests were sent, %d are in the record, %d are said to be lost; %+v", sent, recorded, unrecorded, run)
	}

	r := try(t, dir, "", "replay", "t.jsonl", "--url", endpoint.URL, "--resume", "run")
	run, records := runOfFolder(t, folder), recordsOf(t, folder)
	if !r.measured() || len(records) != rows || run.Sent != rows || !run.Finished() || run.Resumed[0].SentAgain != unrecorded {
		t.Errorf("exit status %d, %d records, %+v\n%s", r.status, len(records), run, r.err)
	}
	if n := linesOf(t, filepath.Join(folder, runfile.RequestsFile)); n != rows {
		t.Errorf("%d lines", n)
	}
}

// linesOf counts the whole lines of a file.
func linesOf(t *testing.T, path string) int {
	t.Helper()
	text := read(t, path)
	return strings.Count(string(text), "\n")
}

func TestSimulationOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	for i := range 2000 { // more than the queue of records holds
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": 5, "output_length": 2}`+"\n", i)
	}
	write(t, dir, "t.jsonl", text.String())
	if talk, status := onSmallDisk(t, dir, "simulate", "t.jsonl", "--out", "run"); status != exitFailed || !strings.Contains(talk, "moontide: recording row ") {
		t.Errorf("exit status %d\n%s", status, talk)
	}
}
