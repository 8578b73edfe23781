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

	"moontide/replay"
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
		"all of these": "--spread-grid --start 2s --end 25s --limit 30 --speedup 30 --ramp 300ms --seed 9",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := append(strings.Fields(flags), sample(t))
			must(t, dir, append([]string{"convert", "-o", "shaped.jsonl"}, args...)...)
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
		if !run.TimeUp || run.Stopped || run.Sent != len(records) || run.Sent+run.NotSent != 100 || run.NotSent < 10 || run.Failure != "" || run.Window != (runfile.Window{WarmupSeconds: 0.1, CooldownSeconds: 0.05}) {
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

// A warm-up sends no prompt of the run and leaves no record.
func TestWarmup(t *testing.T) {
	t.Parallel()
	w, dir := newWitness(t, (*httptest.Server).Start), t.TempDir()
	write(t, dir, "t.jsonl", shortTrace)
	must(t, dir, "replay", "t.jsonl", "--url", w.URL, "--out", "cold")
	cold := w.take()
	must(t, dir, "replay", "t.jsonl", "--url", w.URL, "--warmup-requests", "7", "--out", "warm")
	// It repeats the lengths of the rows: three of seven ask for one token, and
	// look like a probe to the witness.
	warm := w.take()
	if len(cold) != 3 || len(warm) != 3+4 {
		t.Fatalf("%d and %d requests", len(cold), len(warm))
	}
	texts := map[string]int{}
	for _, body := range warm[:4] {
		texts[body]++
		prompt := prefixOfPrompt(t, body)
		for _, measured := range cold {
			if strings.Contains(measured, prompt) {
				t.Errorf("a warm-up prompt is like a measured one: %s", prompt)
			}
		}
	}
	if len(texts) != 4 {
		t.Errorf("%d different texts", len(texts))
	}
	a, b := runOfFolder(t, dir+"/cold"), runOfFolder(t, dir+"/warm")
	if b.Warmup != 7 || a.Warmup != 0 || a.Prompts != b.Prompts || len(recordsOf(t, dir+"/warm")) != 5 {
		t.Errorf("%d warm-up requests, prompts %s and %s", b.Warmup, a.Prompts, b.Prompts)
	}
}

func prefixOfPrompt(t *testing.T, body string) string {
	t.Helper()
	_, rest, ok := strings.Cut(body, `"prompt":[`)
	if !ok || len(rest) < 40 {
		t.Fatalf("no prompt in %s", body)
	}
	return rest[:40]
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

func TestWaitReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfSessions())
	starting := func(probe bool, n int) (int, string) {
		if probe && n < 2 {
			return http.StatusServiceUnavailable, "1"
		}
		return http.StatusOK, ""
	}
	r := try(t, dir, "", "replay", "t.jsonl", "--url", newMoodyEndpoint(t, starting).URL, "--wait-ready", "1m", "--out", "run")
	if !r.measured() || strings.Count(r.err, "moontide: waiting for the endpoint: ") != 1 || !strings.Contains(r.err, "too busy") {
		t.Errorf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	// Whether the one probe returns in time depends on the machine.
	for args, want := range map[string]string{
		"":                   "too busy",
		"--wait-ready 150ms": "the endpoint was not ready within 150ms: ",
	} {
		never := newMoodyEndpoint(t, func(bool, int) (int, string) { return http.StatusServiceUnavailable, "" })
		r := try(t, dir, "", append([]string{"replay", "t.jsonl", "--url", never.URL, "--out", "no"}, strings.Fields(args)...)...)
		if r.status != exitFailed || !strings.Contains(r.err, want) {
			t.Errorf("%q: exit status %d\n%s", args, r.status, r.err)
		}
	}
}

func TestRetryCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", `{"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [1]}`+"\n")
	for want, retry := range []string{"0", "1", "3"} {
		endpoint := newMoodyEndpoint(t, func(probe bool, n int) (int, string) {
			if !probe && n < 2 {
				return http.StatusTooManyRequests, "1"
			}
			return http.StatusOK, ""
		})
		r := try(t, dir, "", "replay", "t.jsonl", "--url", endpoint.URL, "--retry", retry, "--out", "run"+retry)
		rec := recordsOf(t, filepath.Join(dir, "run"+retry))[0]
		if rec.Retries != want || (rec.Class == replay.OK) != (retry == "3") || rec.Ready < time.Duration(want)*time.Second {
			t.Errorf("--retry %s: %+v\n%s%s", retry, rec, r.out, r.err)
		}
		if a, b := runOfFolder(t, dir+"/run"+retry), runOfFolder(t, dir+"/run0"); a.Prompts != b.Prompts || a.Sent != 1 {
			t.Errorf("a request that was sent again is another prompt: %+v", a)
		}
	}
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
