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
	"moontide/replay/settings"
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
	for _, cfg := range []experiment.Config{{Settings: settings.Settings{Trace: settings.Trace{Path: path}}}, {Requests: trace.FromSlice(rows(5, 0))}} {
		cfg.Client.URLs, cfg.Salt = []string{url}, "x"
		result, err := experiment.Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
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
		"a row that never comes": {Requests: blocked},
		"a silent endpoint":      {Requests: trace.FromSlice(rows(1, 0)), Settings: settings.Settings{Client: openai.Config{URLs: []string{"http://" + silent.Addr().String()}}}},
		"waiting for readiness":  {Requests: trace.FromSlice(rows(1, 0)), Settings: settings.Settings{Client: openai.Config{URLs: []string{"http://127.0.0.1:1"}}, WaitReady: time.Hour}},
	} {
		for how, drain := range map[string]bool{"cancelled": false, "drained": true} {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			cfg.Output.Dir = filepath.Join(t.TempDir(), "run")
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
			if _, err := os.Stat(cfg.Output.Dir); err == nil {
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
			Requests: trace.FromSlice(rows(40, 8)), Drain: ended,
			Settings: settings.Settings{
				Closed: true, MaxConcurrency: 1, // however busy the machine is, few are sent before the end
				Client: openai.Config{URLs: []string{url}}, Output: settings.Output{Dir: filepath.Join(t.TempDir(), "run")}, Salt: name,
			},
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
		again, err := experiment.Measure(experiment.MeasureConfig{}, cfg.Output.Dir)
		if err != nil || again.Metrics.Completed != result.Metrics.Completed || again.Metrics.Verdict.Level != result.Metrics.Verdict.Level {
			t.Errorf("%s: measured again %+v, %v", name, again, err)
		}
	}
}

// Configuration errors name the field, before anything is written.
func TestConfigErrors(t *testing.T) {
	t.Parallel()
	window := settings.Window{WarmupSeconds: 1}
	for want, s := range map[string]settings.Settings{
		"max-concurrency must be":     {MaxConcurrency: -1},
		"closed needs":                {Closed: true},
		"retry must be from 0 to 100": {Retries: 101},
		"wait-ready -1s is negative":  {WaitReady: -time.Second},
		"no-chunk-times discards":     {Output: settings.Output{NoChunkTimes: true}, Window: window},
		"speedup must be positive":    {Pacing: settings.Pacing{Speedup: -1}},
		"closed ignores arrivals":     {Closed: true, MaxConcurrency: 1, Pacing: settings.Pacing{Ramp: time.Second}},
		"dataset needs":               {Dataset: "x"},
		"verdict the limit lag-share": {Thresholds: settings.Thresholds{MaxLagShare: 2}},
		"url is not http":             {Client: openai.Config{URLs: []string{"ftp://x"}}},
		"a run is resumed":            {},
		"a run needs a trace":         {},
	} {
		cfg := experiment.Config{Requests: trace.FromSlice(rows(1, 0)), Settings: s}
		cfg.Output.Dir = filepath.Join(t.TempDir(), "run")
		switch want {
		case "a run is resumed":
			cfg.Output.Dir, cfg.Resume = "", true
		case "a run needs a trace":
			cfg.Requests = nil
		}
		result, err := experiment.Run(t.Context(), cfg)
		var wrong *settings.Error
		if result != nil || !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := os.Stat(filepath.Join(cfg.Output.Dir, runfile.RunFile)); err == nil {
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
		Requests: trace.FromSlice(rows(3, 0)),
		Settings: settings.Settings{
			Client:         openai.Config{URLs: []string{url}, OnToken: func(row int, _ []byte) { tokens <- row }},
			WarmupRequests: 5,
		},
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

// A repeated set keeps the completed runs and executes only the others.
func TestSetAgain(t *testing.T) {
	t.Parallel()
	url := served(t)
	s := experiment.Set{
		Base:   experiment.Config{Requests: trace.FromSlice(rows(4, 0)), Settings: settings.Settings{Client: openai.Config{URLs: []string{url}}, Thresholds: settings.Thresholds{MaxLagMS: 1e6}}},
		Points: experiment.Combine(nil, experiment.Axis{Setting: "max-concurrency", Values: []string{"1", "2"}}),
		Dir:    filepath.Join(t.TempDir(), "set"),
	}
	first, err := s.Run(t.Context())
	if err != nil || len(first) != 2 || first[0].Reused || first[1].Result.Run.Settings.MaxConcurrency != 2 || first[0].Result.Run.Settings.Salt == first[1].Result.Run.Settings.Salt {
		t.Fatalf("%+v, %v", first, err)
	}
	s.Points = experiment.Combine(nil, experiment.Axis{Setting: "max-concurrency", Values: []string{"1", "2", "3"}})
	again, err := s.Run(t.Context())
	if err != nil || len(again) != 3 || !again[0].Reused || !again[1].Reused || again[2].Reused {
		t.Errorf("%+v, %v", again, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Dir += "-other"
	if runs, err := s.Run(ctx); runs != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", runs, err)
	}
}

// Replay a trace against an endpoint.
func ExampleRun() {
	url, stop := fastEndpoint()
	defer stop()
	result, err := experiment.Run(context.Background(), experiment.Config{
		Settings: settings.Settings{
			Trace:  settings.Trace{Path: "../../traces/conversation.jsonl"},
			Pacing: settings.Pacing{Limit: 20, Speedup: 100},
			Client: openai.Config{URLs: []string{url}, Model: "sim"},
			Salt:   "example",
		},
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
	result, err := experiment.Run(context.Background(), experiment.Config{Settings: settings.Settings{
		Trace: settings.Trace{Path: path}, Pacing: settings.Pacing{Limit: 5}, Virtual: true, Output: settings.Output{Dir: filepath.Join(t.TempDir(), "run")},
	}})
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
