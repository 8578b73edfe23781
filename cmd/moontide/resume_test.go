package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/replay/settings"
)

// A run is killed with requests in flight: the record has what ended, sent
// requests are known, and --resume sends the rest, each row once.
func TestKilledRunGoesOn(t *testing.T) {
	t.Parallel()
	s, dir := newSlowEndpoint(t), t.TempDir()
	cmd, _, _ := s.start(t, dir)
	for range 3 {
		s.release <- struct{}{}
	}
	folder := filepath.Join(dir, "run")
	awaitRecords(t, folder, 3)
	if r := try(t, dir, "", "replay", "t.jsonl", "--resume", "run"); r.status != exitFailed || !strings.Contains(r.err, "the run is still going") {
		t.Errorf("while it lasts: exit status %d: %s", r.status, r.err)
	}
	for range 2 { // two more in flight
		<-s.got
	}
	endChild(cmd)
	text := read(t, filepath.Join(folder, runfile.SentFile))
	sent := bytes.Count(text, []byte("\n"))
	done, behind := recordsOf(t, folder), 0 // the first row not in the record
	for row := range done {
		behind = max(behind, row+1)
	}
	report := must(t, dir, "report", "run")
	if want := fmt.Sprintf("%d of 500 rows were sent; those without a record were in flight.", sent); !strings.Contains(unwrapped(report), want) || sent < 5 {
		t.Errorf("no %q in\n%s", want, report)
	}

	close(s.release)
	go func() {
		for range s.got {
		}
	}()
	out := try(t, dir, "", "replay", "t.jsonl", "--resume", "run", "--duration", "3s")
	if out.status != exitMisused || !strings.Contains(out.err, "duration was not set, is 3s") {
		t.Errorf("other flags: exit status %d: %s", out.status, out.err)
	}
	going := moontide(dir, "replay", "t.jsonl", "--resume", "run", "--url", s.URL)
	var talk bytes.Buffer
	going.Stderr = &talk
	if err := going.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endChild(going) })
	awaitRecords(t, folder, sent+3)
	interrupt(t, going)
	going.Wait()

	run, records := runOfFolder(t, folder), recordsOf(t, folder)
	if run.Sent != len(records) || run.Sent+run.NotSent != 500 || !run.Stopped || run.Prompts != "" || len(run.Resumed) != 1 {
		t.Fatalf("%d records, %+v\n%s", len(records), run, talk.String())
	}
	r := run.Resumed[0]
	if r.RowsDone != 3 || r.SentAgain != sent-3 || !run.Started.Before(r.At) {
		t.Errorf("%+v, %d were sent", r, sent)
	}
	clock := replay.Milliseconds(r.ClockMS)
	last := 0
	for row, rec := range records {
		last = max(last, row)
		_, before := done[row]
		if rec.Class != replay.OK || before != (rec.Due < clock) {
			t.Errorf("row %d: %v, due %v, the clock went on at %v", row, rec.Class, rec.Due, clock)
		}
		// The first row after the record was due at once, like those in flight
		// before it; the others are 100 ms apart.
		if want := clock + time.Duration(max(0, row-behind))*100*time.Millisecond; !before && rec.Due != want {
			t.Errorf("row %d is due at %v, want %v", row, rec.Due, want)
		}
	}
	if last != len(records)-1 {
		t.Errorf("%d records up to row %d", len(records), last)
	}
	if _, err := os.Stat(filepath.Join(folder, runfile.SentFile)); err != nil {
		t.Errorf("a run that may be resumed forgets what was sent: %v", err)
	}
}

func awaitRecords(t *testing.T, folder string, n int) {
	t.Helper()
	for {
		text, _ := os.ReadFile(filepath.Join(folder, runfile.RequestsFile))
		if bytes.Count(text, []byte("\n")) >= n {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the records never came")
		case <-time.After(time.Millisecond):
		}
	}
}

// A run that stopped because of too many failures resumes to the end of the
// trace, with the same flags; a complete run is not resumed.
func TestStoppedRunGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfSessions())
	write(t, dir, "other.jsonl", rowsOfSessions()+"\n")
	endpoint := newMoodyEndpoint(t, func(probe bool, n int) (int, string) {
		if !probe && n == 4 {
			return http.StatusInternalServerError, ""
		}
		return http.StatusOK, ""
	})
	replayWith := func(args ...string) result {
		return try(t, dir, "", append([]string{"replay"}, args...)...)
	}
	outputs := []string{"--output", "junit=junit.xml", "--json"}
	replayWith(append(outputs, "t.jsonl", "--url", endpoint.URL, "--header", "X-Key: hush", "--abort-after-errors", "1", "--max-concurrency", "1", "--speedup", "0.5", "--out", "run")...)
	if err := os.Remove(filepath.Join(dir, "junit.xml")); err != nil {
		t.Error(err)
	}
	before := runOfFolder(t, dir+"/run")
	if before.Sent >= 12 || !before.Stopped {
		t.Fatalf("%+v", before)
	}
	for want, args := range map[string][]string{
		"pass header again":             {"t.jsonl"},
		"speedup was 0.5, is 3":         {"t.jsonl", "--header", "X-Key: hush", "--speedup", "3"},
		"salt was not set, is x":        {"t.jsonl", "--header", "X-Key: hush", "--salt", "x"},
		"it is another trace":           {"other.jsonl", "--header", "X-Key: hush"},
		"--resume continues in the run": {"t.jsonl", "--out", "x"},
	} {
		if r := replayWith(append(args, "--resume", "run")...); r.status == exitDone || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%v: exit status %d: %s", args, r.status, r.err)
		}
	}
	if r := replayWith("t.jsonl", "--resume", "nowhere"); r.status != exitFailed || !strings.Contains(r.err, "resuming the run in nowhere: not a run's folder") {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
	if after := runOfFolder(t, dir+"/run"); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("what was refused changed run.json: %+v", after)
	}

	r := replayWith("t.jsonl", "--resume", "run", "--header", "X-Key: hush")
	run, records := runOfFolder(t, dir+"/run"), recordsOf(t, dir+"/run")
	if _, err := os.Stat(filepath.Join(dir, "run", runfile.SentFile)); err == nil {
		t.Error("the run ended and keeps the list of what was sent")
	}
	if !r.measured() || run.Stopped || run.Failure != "" || run.Sent != len(records) || run.Skipped != run.NotSent || run.Sent+run.Skipped != 12 || run.Skipped == 0 {
		t.Errorf("exit status %d, %d records, %+v\n%s%s", r.status, len(records), run, r.out, r.err)
	}
	// Outputs are of the command, not of the run: this one asked for text alone.
	if got, err := filepath.Glob(filepath.Join(dir, "*.*")); err != nil || len(got) != 2 || strings.HasPrefix(r.out, "{") {
		t.Errorf("the folder holds %v and the output is\n%s", got, r.out)
	}
	if !strings.Contains(r.out, "the run was resumed: ") || len(settings.Differences(&run.Settings, &before.Settings)) > 0 || !run.Started.Equal(before.Started) {
		t.Errorf("%+v\n%s", run, r.out)
	}
	if again := must(t, dir, "report", "run"); !strings.HasPrefix(r.out, again) {
		t.Errorf("report prints\n%s\nand the run\n%s", again, r.out)
	}
	if r := replayWith("t.jsonl", "--resume", "run"); r.status != exitFailed || !strings.Contains(r.err, "the run is complete") {
		t.Errorf("a run that is over: exit status %d: %s", r.status, r.err)
	}
	must(t, dir, "simulate", "t.jsonl", "--out", "simulated")
	if r := replayWith("t.jsonl", "--resume", "simulated"); r.status != exitFailed || !strings.Contains(r.err, "it is a simulation") {
		t.Errorf("a simulation: exit status %d: %s", r.status, r.err)
	}
	var summary map[string]any
	if text, err := os.ReadFile(dir + "/run/summary.json"); err != nil || json.Unmarshal(text, &summary) != nil {
		t.Errorf("summary.json: %v", err)
	}
}

// Problems that prevent a run are reported before the endpoint is contacted: a
// warm-up would distort other measurements of it.
func TestWhatCannotBeRecordedIsNotBegun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfSessions())
	endpoint := newMoodyEndpoint(t, func(probe bool, n int) (int, string) {
		if !probe && n == 4 {
			return http.StatusInternalServerError, ""
		}
		return http.StatusOK, ""
	})
	try(t, dir, "", "replay", "t.jsonl", "--url", endpoint.URL, "--abort-after-errors", "1", "--max-concurrency", "1", "--warmup-requests", "2", "--out", "run")
	if err := os.Symlink("nowhere/at/all", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	copyRun := func(name, file string, change func(string) string) {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(dir, "run"))); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name, file)
		text, err := os.ReadFile(path)
		if err != nil || change(string(text)) == string(text) {
			t.Fatalf("%s of %s cannot be changed: %v", file, name, err)
		}
		write(t, dir, filepath.Join(name, file), change(string(text)))
	}
	copyRun("twice", runfile.RequestsFile, func(text string) string { return text + text })
	copyRun("over", runfile.RunFile, func(text string) string {
		return strings.Replace(text, `"settings": {`, `"settings": {"duration": "1us", `, 1)
	})
	held, err := runfile.Resume(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	asked := func() (n int) {
		endpoint.mu.Lock()
		defer endpoint.mu.Unlock()
		return endpoint.asked[true] + endpoint.asked[false]
	}
	before, there := asked(), files(t, dir)
	for want, args := range map[string][]string{
		"the run is still going":                           {"--resume", "run"},
		"is recorded twice":                                {"--resume", "twice"},
		"the run's duration of 1µs was over when it ended": {"--resume", "over"},
		"making run folder: mkdir link":                    {"--out", "link", "--url", endpoint.URL, "--warmup-requests", "2"},
		"t.jsonl: row 2 would be sent +Inf days after":     {"--speedup", "1e-320", "--url", endpoint.URL, "--out", "new"},
	} {
		if r := try(t, dir, "", append([]string{"replay", "t.jsonl"}, args...)...); r.status != exitFailed || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%v: exit status %d: %s", args, r.status, r.err)
		}
	}
	if n := asked(); n != before {
		t.Errorf("the endpoint got %d requests", n-before)
	}
	if after := files(t, dir); fmt.Sprint(there) != fmt.Sprint(after) {
		t.Errorf("files are %v, were %v", after, there)
	}
}

// One command starts a run and, when it is repeated, continues what was stopped.
func TestResumeAuto(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfSessions())
	endpoint := newMoodyEndpoint(t, func(probe bool, n int) (int, string) {
		if !probe && n == 4 {
			return http.StatusInternalServerError, ""
		}
		return http.StatusOK, ""
	})
	command := []string{"replay", "t.jsonl", "--url", endpoint.URL, "--abort-after-errors", "1", "--max-concurrency", "1", "--resume", "auto"}
	if r := try(t, dir, "", command...); r.status != exitMisused || !strings.Contains(r.err, "--resume auto needs --out") {
		t.Errorf("without a folder: exit status %d: %s", r.status, r.err)
	}
	command = append(command, "--out", "run")
	try(t, dir, "", command...)
	if before := runOfFolder(t, dir+"/run"); !before.Stopped || len(before.Resumed) != 0 {
		t.Fatalf("the first run: %+v", before)
	}
	if r := try(t, dir, "", append(command, "--salt", "x")...); r.status != exitMisused || !strings.Contains(r.err, "salt was not set, is x") {
		t.Errorf("other flags: exit status %d: %s", r.status, r.err)
	}
	r := try(t, dir, "", command...)
	if run := runOfFolder(t, dir+"/run"); run.Sent+run.Skipped != 12 || run.Stopped || len(run.Resumed) != 1 {
		t.Errorf("the second run, exit status %d: %+v\n%s", r.status, run, r.err)
	}
}
