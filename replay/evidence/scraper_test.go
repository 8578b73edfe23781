package evidence_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"moontide/replay/evidence"
	"moontide/replay/runfile"
)

// The pages are modelled on real ones and use the servers' metric names. Real engines
// sent those in testdata/engines.
func TestParse(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]runfile.ServerFigures{
		"vllm": {
			Engine: "vllm", Engines: 2, KVUse: new(0.3), KVUseMax: new(0.5), Running: new(12.0), Waiting: new(3.0),
			QueriedTokens: new(3000.0), HitTokens: new(1200.0), Preemptions: new(4.0), BlockSize: new(16.0), CapacityTokens: new(32000.0),
		},
		"vllm_v0":    {Engine: "vllm", Engines: 1, KVUse: new(0.25), KVUseMax: new(0.25), Running: new(2.0), Waiting: new(0.0), HitRate: new(0.4), Preemptions: new(1.0)},
		"sglang":     {Engine: "sglang", Engines: 1, KVUse: new(0.28), KVUseMax: new(0.28), Running: new(7.0), Waiting: new(2826.0), QueriedTokens: new(8000.0), HitTokens: new(3300.0), HitRate: new(0.0075), BlockSize: new(1.0), CapacityTokens: new(65536.0)},
		"trtllm":     {Engine: "trtllm", Engines: 1, KVUse: new(0.6), KVUseMax: new(0.6), Running: new(9.0), Waiting: new(1.0), QueriedTokens: new(3200.0), HitTokens: new(2400.0), HitRate: new(0.75), BlockSize: new(32.0), CapacityTokens: new(3200.0)},
		"dynamo":     {Engine: "dynamo", Engines: 2, KVUse: new(0.3), KVUseMax: new(0.4), Running: new(5.0), Waiting: new(6.0), HitRate: new(0.5), BlockSize: new(64.0), CapacityTokens: new(64000.0)},
		"dynamo_old": {Engine: "dynamo", Engines: 2, KVUse: new(0.3), KVUseMax: new(0.4), Running: new(5.0), Waiting: new(6.0), HitRate: new(0.5), BlockSize: new(64.0), CapacityTokens: new(64000.0)},
		"engines/vllm": {
			Engine: "vllm", Engines: 1, KVUse: new(0.0), KVUseMax: new(0.0), Running: new(0.0), Waiting: new(0.0), QueriedTokens: new(2392.0), HitTokens: new(192.0),
			Preemptions: new(0.0), Aborted: new(0.0), StartTime: new(1795396102.2), BlockSize: new(32.0), CapacityTokens: new(2097152.0),
		},
		"engines/llamacpp": {Engine: "llamacpp", Running: new(0.0), Waiting: new(0.0), QueriedTokens: new(462.0), HitTokens: new(206.0)},
		"dynamo_of":        {Engine: "vllm", Engines: 1, KVUse: new(0.1), KVUseMax: new(0.1), Running: new(1.0), Waiting: new(6.0)},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := evidence.Parse(bytes.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		close := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
		if diff := cmp.Diff(want, got, close); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// Counters of ended requests are those that the client closed.
func TestParseAborted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		`vllm:request_success_total{engine="0",finished_reason="stop"} 9
vllm:request_success_total{engine="0",finished_reason="abort"} 3
vllm:request_success_total{engine="1",finished_reason="abort"} 4
`: 7,
		"sglang:num_aborted_requests_total{model_name=\"m\"} 5\n": 5,
		"# TYPE trtllm_request_success_total counter\n" + `trtllm_request_success_total{finished_reason="length"} 9
trtllm_request_success_total{finished_reason="cancelled"} 2
`: 2,
	} {
		f, err := evidence.Parse(strings.NewReader(text + "vllm:num_requests_running 0\n"))
		if err != nil || f.Aborted == nil || *f.Aborted != want {
			t.Errorf("%s: %v aborted, %v", text, f.Aborted, err)
		}
	}
	if f, err := evidence.Parse(strings.NewReader("vllm:num_requests_running 0\n")); err != nil || f.Aborted != nil {
		t.Errorf("without a counter: %v aborted, %v", f.Aborted, err)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                           "metrics have no figure of vLLM, SGLang, TensorRT-LLM, Dynamo or llama.cpp",
		"# HELP x y\nprocess_cpu_seconds 3\n":        "metrics have no figure",
		"vllm:num_requests_running NaN\n":            "metrics have no figure",
		"[{\"iter\": 1}]\n":                          "metrics do not parse",
		"vllm:num_requests_running{a=\"\n":           "metrics do not parse",
		"vllm:num_requests_running 1\x1b[2J\n":       "metrics do not parse",
		"sglang:num_running_reqs{tp_rank=\"1\"} 4\n": "metrics have no figure", // same value from another rank
	} {
		f, err := evidence.Parse(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%q: %+v, %v", text, f, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	texts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(texts) == 0 {
		f.Fatal(err)
	}
	for _, path := range texts {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := evidence.Parse(bytes.NewReader(text))
		if err == nil && got.Engine == "" {
			t.Errorf("%+v", got)
		}
	})
}

// serve runs a handler until the test ends and returns its URL.
func serve(t *testing.T, h fasthttp.RequestHandler) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{Handler: h, Logger: quiet{}}
	go server.Serve(ln)
	t.Cleanup(func() { ln.Close() })
	return "http://" + ln.Addr().String()
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func scrape(t *testing.T, ctx context.Context, urls ...string) (runfile.ServerFigures, error) {
	t.Helper()
	s, err := evidence.New(urls, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Scrape(ctx)
}

func running(n int) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/metrics" && len(ctx.Request.Header.Peek("Authorization")) == 0 {
			fmt.Fprintf(ctx, "vllm:num_requests_running{engine=\"0\"} %d\n", n)
		}
	}
}

func TestScrape(t *testing.T) {
	t.Parallel()
	a, b := serve(t, running(3)), serve(t, running(4))
	f, err := scrape(t, context.Background(), a, b+"/metrics?token=secret")
	if err != nil || f.Running == nil || *f.Running != 7 {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestScrapeFaults(t *testing.T) {
	t.Parallel()
	wait := make(chan struct{})
	defer close(wait)
	well := serve(t, running(1))
	for name, tc := range map[string]struct {
		handler fasthttp.RequestHandler
		want    string
	}{
		"refuses":      {func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(500) }, "HTTP status 500"},
		"says nothing": {func(*fasthttp.RequestCtx) {}, "metrics have no figure"},
		"is a page":    {func(ctx *fasthttp.RequestCtx) { ctx.WriteString("<html>") }, "metrics do not parse"},
		"is endless":   {func(ctx *fasthttp.RequestCtx) { ctx.Write(make([]byte, 9<<20)) }, "body size exceeds"},
		"is silent":    {func(*fasthttp.RequestCtx) { <-wait }, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			if name == "is silent" {
				var end context.CancelFunc
				ctx, end = context.WithTimeout(ctx, 50*time.Millisecond)
				defer end()
			}
			urls := []string{serve(t, tc.handler) + "/m?token=secret", well}
			if name == "says nothing" {
				urls = urls[:1]
			}
			f, err := scrape(t, ctx, urls...)
			if err == nil {
				t.Fatalf("%+v", f)
			}
			// On a busy machine, dialing may take all the time.
			said := strings.ReplaceAll(err.Error(), "timed out", "timeout")
			if !strings.Contains(said, tc.want) || strings.Contains(said, "secret") {
				t.Errorf("%+v, %v", f, err)
			}
		})
	}
	if f, err := scrape(t, context.Background(), "http://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "scraping http://127.0.0.1:1/metrics") {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestNewRefusesURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                          "is not http://host/metrics",
		"localhost:8000/metrics":    "is not http://host/metrics",
		"ftp://host/metrics":        "is not http://host/metrics",
		"http://user:pw@host":       "credentials",
		"http://?token=secret":      "is not http://host/metrics",
		"http://ho st?token=secret": "is not http://host/metrics",
	} {
		_, err := evidence.New([]string{"http://host", url}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
