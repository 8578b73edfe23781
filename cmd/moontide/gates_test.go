package main

import (
	"errors"
	"fmt"
	"moontide/replay/cluster"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
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
