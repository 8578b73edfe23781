package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/replay/cluster"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
)

var failedE2EL = regexp.MustCompile(`moontide: failed: .*mean_e2el_ms`)

// Every verb that measures runs prints its gates and exits with status 4 if one
// fails.
func TestGatesOfEveryVerb(t *testing.T) {
	t.Parallel()
	dir, url := t.TempDir(), serveFast(t)
	must(t, dir, "simulate", sample(t), "--out", "run")
	write(t, dir, "t.jsonl", shortTrace)
	lenient := []string{"--verdict", "lag=1h,lag-share=1"} // on a busy machine
	for name, args := range map[string][]string{
		"report":   {"report", "run"},
		"simulate": {"simulate", sample(t)},
		"compare":  {"compare", "run", "run"},
		"replay":   append([]string{"replay", "t.jsonl", "--url", url}, lenient...),
		"bench":    append([]string{"bench", "--isl", "50", "--osl", "3", "--max-concurrency", "2", "--url", url}, lenient...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passed := try(t, dir, "", append(args, "--slo", "mean_ttft<1h,failed<1%", "--fail-if", "mean_e2el>1h")...)
			if passed.status != exitDone || !strings.Contains(passed.out, "Gates: PASS\n") || strings.Count(passed.out, "\n  pass  ") < 3 {
				t.Errorf("exit status %d\n%s%s", passed.status, passed.out, passed.err)
			}
			for _, failing := range [][]string{{"--slo", "mean_ttft<1h,mean_e2el<1us"}, {"--fail-if", "mean_e2el>1us", "--slo", "mean_ttft<1h"}} {
				r := try(t, dir, "", append(args, failing...)...)
				if r.status != exitThreshold || !strings.Contains(r.out, "Gates: FAIL\n") || !failedE2EL.MatchString(r.err) || strings.Contains(r.err, "failed: mean_ttft") {
					t.Errorf("%v: exit status %d\n%s%s", failing, r.status, r.out, r.err)
				}
			}
			forced := append(args, "--slo", "p99_ttft<1h")
			if r := try(t, dir, "", forced...); r.status != exitThreshold || !strings.Contains(r.err, "too few requests for p99: ") {
				t.Errorf("too few requests: exit status %d\n%s%s", r.status, r.out, r.err)
			}
			if r := try(t, dir, "", append(forced, "--force")...); r.status != exitDone {
				t.Errorf("too few requests, forced: exit status %d\n%s%s", r.status, r.out, r.err)
			}
		})
	}
}

// Gates do not belong to a run: it is resumed, and a sweep continued, with others.
func TestGatesAreNoSettingsOfARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "simulate", sample(t), "--out", "run", "--slo", "mean_ttft<1h", "--fail-if", "failed>50%", "--force")
	info := runOfFolder(t, filepath.Join(dir, "run"))
	for name := range info.Settings.Given() {
		if slices.Contains(words("slo fail-if force"), name) {
			t.Errorf("the setting %s would prevent it", name)
		}
	}
}

// The errors that decide the exit status, worst first.
func TestOrderOfExitStatuses(t *testing.T) {
	t.Parallel()
	gate := gateError{errors.New("failed: x")}
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{gate, exitThreshold},
		{errors.Join(gate, errInvalid), exitInvalid},
		{errors.Join(gate, errInvalid, errors.New("disk full")), exitFailed},
		{errors.Join(errInvalid, fmt.Errorf("x: %w", &cluster.EndedError{Reason: "lost", Resumable: true})), exitPartLost},
		{errors.Join(errInvalid, &cluster.EndedError{Reason: "failed"}), exitFailed},
		{errors.Join(gate, errInvalid, syscall.EPIPE), exitFailed},
		{errors.Join(gate, errInvalid, errors.New("disk full"), misused("flag")), exitMisused},
	} {
		if got := statusOf(tc.err); got != tc.want {
			t.Errorf("%v: exit status %d, want %d", tc.err, got, tc.want)
		}
	}
}

// rewritten changes a file in a run's folder.
func rewritten(t *testing.T, path string, change func(string) string) {
	t.Helper()
	text := read(t, path)
	write(t, "", path, change(string(text)))
}

// Each report ends with the verdict and the objectives, where a reader of a terminal sees
// them.
func TestVerdictIsLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	drawn := strings.Fields("bench --virtual --isl 500 --osl 5 --slo p50_ttft<1m --out ")
	simulated := []string{"simulate", sample(t), "--limit", "40", "--slo", "p50_ttft<1m"}
	with := func(args []string, more ...string) []string { return append(append([]string{}, args...), more...) }
	drawn = drawn[:len(drawn)-1]
	must(t, dir, with(simulated, "--out", "one")...)
	must(t, dir, "simulate", sample(t), "--limit", "40", "--out", "none")
	for _, test := range []struct {
		name, last string
		args       []string
	}{
		{"replay", "Gates", []string{"replay", sample(t), "--limit", "3", "--set", "step-base=1ms", "--slo", "mean_ttft<1h", "--out", "live"}},
		{"bench", "Gates", with(drawn, "--max-concurrency", "1,2", "--out", "sweep")},
		{"bench of one run", "Gates", with(drawn, "--max-concurrency", "1", "--out", "single")},
		{"bench --find", "Gates", with(drawn, "--find", "concurrency", "--max-concurrency", "1,4", "--min-requests", "50", "--out", "find")},
		{"simulate", "Gates", with(simulated, "--out", "two")},
		{"simulate of several", "Gates", with(simulated, "--engines", "1,2")},
		{"report", "Gates", []string{"report", "one", "--slo", "p50_ttft<1m"}},
		{"report without gates", "Verdict", []string{"report", "none"}},
		{"report of runs", "Gates", []string{"report", "one", "two", "--slo", "p50_ttft<1m"}},
		{"report of sweeps", "Gates", []string{"report", "sweep", "single", "--slo", "p50_ttft<1m"}},
		{"compare", "Gates", []string{"compare", "one", "two", "--slo", "mean_ttft<+5%"}},
		{"check", "", []string{"check", sample(t)}},
		{"synth --check", "Verdict", []string{"synth", "--from", sample(t), "--check", "-o", "drawn.jsonl"}},
	} {
		r := try(t, dir, "", test.args...)
		if r.status == exitMisused {
			t.Errorf("%s: exit status %d\n%s", test.name, r.status, r.err)
		}
		end := strings.LastIndex(r.out, "\nVerdict: ") + 1
		if end == 0 {
			end = strings.LastIndex(r.out, "\nGates: ") + 1
		}
		if test.last == "" {
			end = len(r.out)
		}
		last := ""
		for line := range strings.Lines(r.out[end:]) {
			if heading, _, found := strings.Cut(line, ": "); found && (heading == "Verdict" || heading == "Gates") {
				last = heading
			} else if line != "\n" && !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: after %s comes %q", test.name, last, line)
			}
		}
		if last != test.last {
			t.Errorf("%s ends with %q\n%s", test.name, last, r.out)
		}
	}
}

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
