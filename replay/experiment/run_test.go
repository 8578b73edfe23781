package experiment_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/server"
	"moontide/trace"
	"moontide/trace/tracetest"
)

func TestMain(m *testing.M) {
	tracetest.Waiting()
	m.Run()
}

func rows(n int, apart float64) []trace.Request {
	all := make([]trace.Request, n)
	for i := range all {
		all[i] = trace.Request{Timestamp: trace.Some(apart * float64(i)), InputLength: 50, OutputLength: 2}
	}
	return all
}

// Requests built by a program are replayed like those of a file, and leave no
// folder unless Dir is set.
func TestRequestsAndPath(t *testing.T) {
	url := served(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	path := filepath.Join(t.TempDir(), "t.jsonl")
	text := ""
	for range 5 {
		text += `{"timestamp": 0, "input_length": 50, "output_length": 2}` + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var schedules, prompts []string
	for _, source := range []experiment.Trace{{Path: path}, {Requests: trace.FromSlice(rows(5, 0))}} {
		result, err := experiment.Run(t.Context(), experiment.Config{Trace: source, Client: openai.Config{URL: url}, Salt: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if l := result.Run.Limits; l.TimeoutSeconds != 3600 || l.FirstByteSeconds != 1800 || l.IdleSeconds != 120 {
			t.Errorf("the record has the limits %+v", l)
		}
		if result.Metrics.Completed != 5 || result.Dir != "" || len(result.Run.Trace.SHA256) != 64 {
			t.Errorf("%+v", result.Run)
		}
		schedules, prompts = append(schedules, result.Run.Schedule), append(prompts, result.Run.Prompts)
	}
	if schedules[0] != schedules[1] || prompts[0] != prompts[1] {
		t.Errorf("schedules %q, prompts %q", schedules, prompts)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

// Cancelling the context ends a waiting run promptly, and leaves nothing behind.
func TestCancel(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	blocked := func(yield func(trace.Request, error) bool) {
		if yield(rows(1, 0)[0], nil) {
			<-never
		}
	}
	for name, cfg := range map[string]experiment.Config{
		"a row that never comes": {Trace: experiment.Trace{Requests: blocked}},
		"a silent endpoint":      {Trace: experiment.Trace{Requests: trace.FromSlice(rows(1, 0))}, Client: openai.Config{URL: "http://" + silent.Addr().String()}},
		"waiting for readiness":  {Trace: experiment.Trace{Requests: trace.FromSlice(rows(1, 0))}, Client: openai.Config{URL: "http://127.0.0.1:1"}, WaitReady: time.Hour},
	} {
		for how, drain := range map[string]bool{"cancelled": false, "drained": true} {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			cfg.Dir = filepath.Join(t.TempDir(), "run")
			cfg.Drain = ended
			time.AfterFunc(20*time.Millisecond, func() {
				if drain {
					close(ended)
				} else {
					cancel()
				}
			})
			result, err := experiment.Run(ctx, cfg)
			cancel()
			if result != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %s: %v, %v", name, how, result, err)
			}
			if _, err := os.Stat(cfg.Dir); err == nil {
				t.Errorf("%s, %s: it leaves a folder", name, how)
			}
		}
	}
}

// A stopped run is measured and can be resumed.
func TestStopAndResume(t *testing.T) {
	t.Parallel()
	url := served(t)
	for name, drain := range map[string]bool{"cancelled": false, "drained": true} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		records := 0
		cfg := experiment.Config{
			Trace:  experiment.Trace{Requests: trace.FromSlice(rows(40, 8))},
			Closed: true, MaxConcurrency: 1, // however busy the machine is, few are sent before the end
			Client: openai.Config{URL: url}, Dir: filepath.Join(t.TempDir(), "run"), Salt: name, Drain: ended,
			Observer: experiment.Observer{Record: func(replay.Record) {
				if records++; records != 3 {
				} else if drain {
					close(ended)
				} else {
					cancel()
				}
			}},
		}
		result, err := experiment.Run(ctx, cfg)
		cancel()
		if !errors.Is(err, experiment.ErrStopped) || result == nil || result.Metrics.Completed < 3 || result.Run.NotSent == 0 || !result.Run.Stopped {
			t.Fatalf("%s: %+v, %v", name, result, err)
		}
		cfg.Resume, cfg.Drain, cfg.Observer = true, nil, experiment.Observer{}
		if result, err = experiment.Run(t.Context(), cfg); err != nil || result.Metrics.Completed+result.Metrics.Failed != 40 || len(result.Run.Resumed) != 1 {
			t.Fatalf("%s, resumed: %+v, %v", name, result, err)
		}
		if _, err := experiment.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "the run is complete") {
			t.Errorf("%s, resumed twice: %v", name, err)
		}
		again, err := experiment.Measure(experiment.MeasureConfig{}, cfg.Dir)
		if err != nil || again.Metrics.Completed != result.Metrics.Completed || again.Metrics.Verdict.Level != result.Metrics.Verdict.Level {
			t.Errorf("%s: measured again %+v, %v", name, again, err)
		}
	}
}

// Configuration errors name the field, before anything is written.
func TestConfigErrors(t *testing.T) {
	t.Parallel()
	some := experiment.Trace{Requests: trace.FromSlice(rows(1, 0))}
	for want, cfg := range map[string]experiment.Config{
		"Trace needs":                   {},
		"MaxConcurrency must not":       {Trace: some, MaxConcurrency: -1},
		"Closed needs":                  {Trace: some, Closed: true},
		"Retries must be from 0 to 100": {Trace: some, Retries: 101},
		"WaitReady must not":            {Trace: some, WaitReady: -time.Second},
		"Resume needs":                  {Trace: some, Resume: true},
		"NoChunkTimes discards":         {Trace: some, NoChunkTimes: true, Window: runfile.Window{WarmupSeconds: 1}},
		"the speedup is not":            {Trace: some, Pacing: trace.Pacing{Speedup: -1}},
		"a closed loop has no arrivals": {Trace: some, Closed: true, MaxConcurrency: 1, Pacing: trace.Pacing{Ramp: time.Second}},
		"Dataset needs":                 {Trace: some, Dataset: "x"},
		"MaxLagShare must be":           {Trace: some, Thresholds: runfile.Thresholds{MaxLagShare: 2}},
		"url is not http":               {Trace: some, Client: openai.Config{URL: "ftp://x"}},
	} {
		cfg.Dir = filepath.Join(t.TempDir(), "run")
		if want == "Resume needs" {
			cfg.Dir = ""
		}
		result, err := experiment.Run(t.Context(), cfg)
		var wrong *experiment.ConfigError
		if result != nil || !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := os.Stat(filepath.Join(cfg.Dir, runfile.RunFile)); err == nil {
			t.Errorf("%s: it leaves a folder", want)
		}
	}
}

// Warm-up requests reach the endpoint and no callback.
func TestWarmupIsNotObserved(t *testing.T) {
	t.Parallel()
	url := served(t)
	var recorded int
	tokens := make(chan int, 100)
	result, err := experiment.Run(t.Context(), experiment.Config{
		Trace:          experiment.Trace{Requests: trace.FromSlice(rows(3, 0))},
		Client:         openai.Config{URL: url, OnToken: func(row int, _ []byte) { tokens <- row }},
		WarmupRequests: 5,
		Observer: experiment.Observer{
			Record: func(replay.Record) { recorded++ },
		},
	})
	if err != nil || result.Run.Warmup != 5 || recorded != 3 {
		t.Errorf("%d recorded, %+v, %v", recorded, result, err)
	}
	close(tokens)
	for row := range tokens {
		if row < 0 || row >= 3 {
			t.Errorf("a token of row %d", row)
		}
	}
}

// A repeated sweep keeps the completed runs and executes only the others.
func TestSweepAgain(t *testing.T) {
	t.Parallel()
	url := served(t)
	cfg := experiment.SweepConfig{
		Sweep: experiment.Sweep{Axis: experiment.Concurrency, Levels: []float64{1, 2}, Prompts: 4, Targets: []experiment.Target{{URL: url}}},
		Trace: func(leg experiment.Leg) (experiment.Trace, error) {
			return experiment.Trace{Requests: trace.FromSlice(rows(leg.Prompts, 0))}, nil
		},
		Run: experiment.Config{Thresholds: runfile.Thresholds{MaxLagMS: 1e6}},
		Dir: filepath.Join(t.TempDir(), "sweep"),
	}
	first, err := experiment.RunSweep(t.Context(), cfg)
	if err != nil || len(first) != 2 || first[0].Found || first[1].Run.Limits.MaxConcurrency != 2 || first[0].Run.Salt == first[1].Run.Salt {
		t.Fatalf("%+v, %v", first, err)
	}
	cfg.Levels = []float64{1, 2, 3}
	again, err := experiment.RunSweep(t.Context(), cfg)
	if err != nil || len(again) != 3 || !again[0].Found || !again[1].Found || again[2].Found {
		t.Errorf("%+v, %v", again, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg.Dir += "-other"
	if runs, err := experiment.RunSweep(ctx, cfg); runs != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", runs, err)
	}
}

// Replay a trace against an endpoint.
func ExampleRun() {
	url, stop := fastEndpoint()
	defer stop()
	result, err := experiment.Run(context.Background(), experiment.Config{
		Trace:  experiment.Trace{Path: "../../traces/conversation.jsonl"},
		Pacing: trace.Pacing{Limit: 20, Speedup: 100},
		Client: openai.Config{URL: url, Model: "sim"},
		Salt:   "example",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Metrics.Completed, "completed,", result.Metrics.Failed, "failed")
	// Output: 20 completed, 0 failed
}

// served serves them until the end of a test.
func served(t *testing.T) string {
	url, stop := fastEndpoint()
	t.Cleanup(stop)
	return url
}

// fastEndpoint serves simulated engines that take no time.
func fastEndpoint() (url string, stop func()) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Run(ctx, ln, server.Config{Deployment: engine.Deployment{}})
	}()
	return "http://" + ln.Addr().String(), func() { cancel(); <-ended }
}

// With a limit on rows, the rest of a large trace is not read: here it is a hole of
// 64 GiB.
func TestLimitLeavesTheRestUnread(t *testing.T) {
	t.Parallel()
	row := `{"timestamp": %d, "input_length": %d, "output_length": 2, "hash_ids": [1, %d]}` + "\n"
	var text strings.Builder
	for i := range 8 {
		fmt.Fprintf(&text, row, i, 1024-i%2*511, 2+i)
	}
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 64<<30); err != nil {
		t.Skip("no sparse files: ", err)
	}
	result, err := experiment.Run(context.Background(), experiment.Config{
		Trace: experiment.Trace{Path: path}, Pacing: trace.Pacing{Limit: 5}, Virtual: true, Dir: filepath.Join(t.TempDir(), "run"),
	})
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Join(strings.SplitAfter(text.String(), "\n")[:5], "")
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(first)))
	if got := result.Run.Trace; result.Run.Rows != 5 || got.BlockSize != 512 || got.DigestRows != 5 || got.SHA256 != want {
		t.Errorf("%d rows, %+v, want the SHA-256 %s", result.Run.Rows, got, want)
	}
}

// Agents with live answers over chat messages on vLLM 0.32, with a model of random weights:
// the text of an answer encodes to other tokens than were generated, so prompts have
// 41,585 tokens instead of 41,472 and 15 of 36 turns have fewer cached tokens than they
// would with the generated ones. The run is VALID, with a note.
func TestLiveChatOnVLLM(t *testing.T) {
	result, err := experiment.Measure(experiment.MeasureConfig{}, "testdata/live-chat")
	if err != nil {
		t.Fatal(err)
	}
	m := result.Metrics
	if l := m.Lengths; m.Input != 41_585 || l.Prompts != 36 || l.PromptsOff != 0 || l.AsText != 30 || l.TextTokens != 41_585-41_472 {
		t.Errorf("%d prompt tokens: %+v", m.Input, l)
	}
	if p := m.Cache.Prediction; p.Predicted != 32_928 || p.Measured != 32_256 || p.AsText != 1312 || p.Equal != 36 || p.TemplateTokens != 2 {
		t.Errorf("%+v", p)
	}
	said := false
	for _, e := range m.Verdict.Evidence {
		said = said || strings.HasPrefix(e.Text, "30 prompts contain answers as text") && strings.Contains(e.Text, "+113 tokens in all (0.272 % of the input)")
	}
	if m.Verdict.Level != measure.Valid || !said {
		t.Errorf("%+v", m.Verdict)
	}
}
