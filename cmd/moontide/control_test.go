package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"moontide/replay/runfile"
)

// Every replaying verb shapes a trace alike: replay and simulate send what
// convert writes.
func TestPacingIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	url := serveFast(t)
	for name, flags := range map[string]string{
		"rate":         "--rate 200 --arrival gamma --burstiness 0.5 --seed 3",
		"ramp":         "--rate 300 --arrival constant --ramp 200ms",
		"first rows":   "--num-prompts 7 --speedup 10",
		"all of these": "--set spread-grid=true --start 2s --end 25s --limit 30 --speedup 30 --ramp 300ms --seed 9",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := append(strings.Fields(flags), sample(t))
			must(t, dir, append([]string{"convert", sample(t), "-o", "shaped.jsonl"}, strings.Fields(strings.Replace(flags, "--set spread-grid=true", "--spread-grid", 1))...)...)
			must(t, dir, append([]string{"simulate", "--out", "simulated"}, args...)...)
			must(t, dir, append([]string{"replay", "--url", url, "--salt", name, "--out", "replayed"}, args...)...)
			rows := rowsOfTrace(t, filepath.Join(dir, "shaped.jsonl"), 1000)
			replayed, simulated := recordsOf(t, filepath.Join(dir, "replayed")), recordsOf(t, filepath.Join(dir, "simulated"))
			if len(rows) != len(replayed) || len(rows) != len(simulated) || len(rows) < 5 {
				t.Fatalf("%d rows, %d replayed, %d simulated", len(rows), len(replayed), len(simulated))
			}
			ramp := strings.Contains(flags, "--ramp")
			for i, row := range rows {
				// A replay starts with the first arrival. A ramp starts with the
				// replay, so a trace that starts later is on another part of it.
				want := time.Duration((row.Timestamp.Value - rows[0].Timestamp.Value) * float64(time.Millisecond))
				if d := replayed[i].Due - simulated[i].Due; d != 0 || replayed[i].InputLength != row.InputLength {
					t.Fatalf("row %d: %+v, simulated %+v", i, replayed[i].Request, simulated[i].Request)
				}
				if d := replayed[i].Due - want; (d > time.Microsecond || d < -time.Microsecond) && !(ramp && rows[0].Timestamp.Value > 0) {
					t.Fatalf("row %d is due at %v, want %v", i, replayed[i].Due, want)
				}
			}
			a, b := runOfFolder(t, dir+"/replayed"), runOfFolder(t, dir+"/simulated")
			if a.Schedule != b.Schedule {
				t.Error("the schedules have other digests")
			}
		})
	}
}

// A run that reached its maximum duration is complete.
func TestDurationCommand(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	for _, args := range [][]string{{"replay", "--url", url, "--speedup", "10"}, {"simulate", "--speedup", "10"}} {
		r := try(t, dir, "", append(args, sample(t), "--duration", "1s", "--warmup-time", "100ms", "--cooldown-time", "50ms", "--out", args[0])...)
		if !r.measured() {
			t.Errorf("%v: exit status %d\n%s%s", args, r.status, r.out, r.err)
		}
		run := runOfFolder(t, filepath.Join(dir, args[0]))
		records := recordsOf(t, filepath.Join(dir, args[0]))
		if !run.TimeUp || run.Stopped || run.Sent != len(records) || run.Sent+run.NotSent != 100 || run.NotSent < 10 || run.Failure != "" || run.Settings.Window != (runfile.Window{WarmupSeconds: 0.1, CooldownSeconds: 0.05}) {
			t.Errorf("%+v, %d records", run, len(records))
		}
		if want := fmt.Sprintf("Sending ended after the configured 1 s: %d of 100 rows were not sent.", run.NotSent); !strings.Contains(unwrapped(r.out), want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
		for row, rec := range records {
			if rec.Ready >= time.Second {
				t.Errorf("row %d was ready at %v", row, rec.Ready)
			}
		}
	}
}

func TestFailedWarmupEndsIt(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t, "--max-model-len", "500"), t.TempDir()
	write(t, dir, "t.jsonl", shortTrace)
	r := try(t, dir, "", "replay", "t.jsonl", "--url", url, "--warmup-requests", "3", "--out", "run")
	if r.status != exitFailed || !strings.Contains(r.err, "a warm-up request failed, so the run did not start: status: ") || r.out != "" {
		t.Errorf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	if _, err := os.Stat(dir + "/run"); err == nil {
		t.Error("it left a folder")
	}
}

// moodyEndpoint answers according to its mood, given the number of the request
// in the run and of the probe before it, from 0.
type moodyEndpoint struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[bool]int // by whether it was a probe
}

func newMoodyEndpoint(t *testing.T, mood func(probe bool, n int) (status int, retryAfter string)) *moodyEndpoint {
	e := &moodyEndpoint{asked: map[bool]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"data": [{"id": "m"}]}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		probe := strings.Contains(string(body), `"max_tokens":1,`)
		e.mu.Lock()
		n := e.asked[probe]
		e.asked[probe]++
		e.mu.Unlock()
		if status, after := mood(probe, n); status != http.StatusOK {
			w.Header().Set("Retry-After", after)
			http.Error(w, `{"error": {"message": "too busy"}}`, status)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices": [{"text": " a", "finish_reason": "length"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(e.Close)
	return e
}

func TestAbortAfterErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfSessions())
	endpoint := newMoodyEndpoint(t, func(probe bool, n int) (int, string) {
		if !probe && n > 3 {
			return http.StatusInternalServerError, ""
		}
		return http.StatusOK, ""
	})
	r := try(t, dir, "", "replay", "t.jsonl", "--url", endpoint.URL, "--abort-after-errors", "2", "--max-concurrency", "1", "--out", "run")
	run := runOfFolder(t, dir+"/run")
	if r.status != exitFailed || !strings.Contains(r.err, "too many requests failed: 2") || !run.Stopped || !strings.Contains(run.Failure, "too many") {
		t.Errorf("exit status %d, %+v\n%s%s", r.status, run, r.out, r.err)
	}
	if records := recordsOf(t, dir+"/run"); len(records) != run.Sent || run.Sent+run.NotSent != 12 || run.NotSent == 0 {
		t.Errorf("%d records, %d sent, %d not", len(records), run.Sent, run.NotSent)
	}
}
