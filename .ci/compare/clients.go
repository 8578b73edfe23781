package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"moontide/.ci/results"
)

// load is what every client has to send.
type load struct {
	Name        string  `json:"name"`
	Requests    int     `json:"requests"`
	Rate        float64 `json:"rate,omitempty"`        // requests per second; 0 keeps Concurrency in flight
	Concurrency int     `json:"concurrency,omitempty"` // streams at a time; with a Rate, the number that it leads to
	OSL         int     `json:"osl"`
	// Times of the endpoint, in milliseconds.
	TPOT int `json:"tpot_ms"`
	TTFT int `json:"ttft_ms"`
}

// lasts returns the duration of a load with a rate if nothing is late.
func (l load) lasts() time.Duration {
	answer := time.Duration(l.TTFT+(l.OSL-1)*l.TPOT) * time.Millisecond
	return answer + time.Duration(float64(l.Requests)/l.Rate*float64(time.Second))
}

const isl = 16

// figures are the latencies that a client reports, in milliseconds.
type figures struct {
	Completed int        `json:"completed"`
	Failed    int        `json:"failed"`
	Duration  float64    `json:"duration_s"`
	TTFT      [3]float64 `json:"ttft_ms"` // mean, median, p99
	ITL       [3]float64 `json:"itl_ms"`
	Says      string     `json:"says,omitempty"` // about its own validity
}

// client is a load generator.
type client struct {
	name string
	args func(t tools, url, dir string, l load) []string
	env  []string
	read func(dir, output string, l load) (figures, error)
}

var clients = []client{
	{name: moontideName, args: moontideArgs, read: readMoontide},
	{name: vllmName, args: vllmArgs, env: []string{"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1"}, read: readVLLM},
	{name: aiperfName, args: aiperfArgs, env: []string{"AIPERF_HTTP_CONNECTION_LIMIT=20000"}, read: readAIPerf},
}

const (
	moontideName = "moontide"
	vllmName     = "vllm bench serve"
	aiperfName   = "AIPerf"
)

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func moontideArgs(t tools, url, dir string, l load) []string {
	args := []string{t.moontide, "bench", "--url", url, "--isl", strconv.Itoa(isl), "--osl", strconv.Itoa(l.OSL),
		"--num-prompts", strconv.Itoa(l.Requests), "--out", filepath.Join(dir, "sweep")}
	if l.Rate > 0 {
		return append(args, "--rate", number(l.Rate), "--arrival", "constant")
	}
	return append(args, "--concurrency", strconv.Itoa(l.Concurrency))
}

// summary has the names of vLLM's results, which moontide uses too.
type summary struct {
	Completed  int     `json:"completed"`
	Failed     int     `json:"failed"`
	Duration   float64 `json:"duration"`
	MeanTTFT   float64 `json:"mean_ttft_ms"`
	MedianTTFT float64 `json:"median_ttft_ms"`
	P99TTFT    float64 `json:"p99_ttft_ms"`
	MeanITL    float64 `json:"mean_itl_ms"`
	MedianITL  float64 `json:"median_itl_ms"`
	P99ITL     float64 `json:"p99_itl_ms"`
	Moontide   struct {
		Verdict  string `json:"verdict"`
		Evidence []struct {
			Level string `json:"level"`
			Text  string `json:"text"`
		} `json:"evidence"`
	} `json:"moontide"`
}

func readSummary(path string) (f figures, s summary, err error) {
	if err := results.ReadJSON(path, &s); err != nil {
		return f, s, err
	}
	return figures{
		Completed: s.Completed, Failed: s.Failed, Duration: s.Duration,
		TTFT: [3]float64{s.MeanTTFT, s.MedianTTFT, s.P99TTFT}, ITL: [3]float64{s.MeanITL, s.MedianITL, s.P99ITL},
	}, s, nil
}

func readMoontide(dir, _ string, _ load) (figures, error) {
	paths, _ := filepath.Glob(filepath.Join(dir, "sweep", "*", "summary.json"))
	if len(paths) != 1 {
		return figures{}, fmt.Errorf("%d summaries", len(paths))
	}
	f, s, err := readSummary(paths[0])
	f.Says = s.Moontide.Verdict
	for _, e := range s.Moontide.Evidence {
		if e.Level != "VALID" {
			text, _, _ := strings.Cut(e.Text, " (SUSPECT")
			f.Says += "; " + text
		}
	}
	return f, err
}

func vllmArgs(t tools, url, dir string, l load) []string {
	args := []string{filepath.Join(t.vllm, "bin", "vllm"), "bench", "serve", "--backend", "openai", "--base-url", url,
		"--model", "sim", "--tokenizer", t.tokenizer, "--dataset-name", "random", "--random-input-len", strconv.Itoa(isl),
		"--random-output-len", strconv.Itoa(l.OSL), "--ignore-eos", "--num-prompts", strconv.Itoa(l.Requests), "--disable-tqdm",
		"--percentile-metrics", "ttft,tpot,itl,e2el", "--save-result", "--result-dir", dir, "--result-filename", "result.json"}
	if l.Rate > 0 { // a large burstiness makes the gaps even
		return append(args, "--request-rate", number(l.Rate), "--burstiness", "100000")
	}
	return append(args, "--max-concurrency", strconv.Itoa(l.Concurrency))
}

func readVLLM(dir, output string, _ load) (figures, error) {
	f, _, err := readSummary(filepath.Join(dir, "result.json"))
	f.Says = warnings(output)
	return f, err
}

func aiperfArgs(t tools, url, dir string, l load) []string {
	n := strconv.Itoa(l.Requests)
	args := []string{filepath.Join(t.aiperf, "bin", "aiperf"), "profile", "--url", url, "--model", "sim",
		"--endpoint-type", "completions", "--streaming", "--tokenizer", t.tokenizer, "--use-server-token-count", "--use-legacy-max-tokens",
		"--isl", strconv.Itoa(isl), "--isl-stddev", "0", "--osl", strconv.Itoa(l.OSL), "--osl-stddev", "0", "--extra-inputs", "ignore_eos:true",
		"--request-count", n, "--num-dataset-entries", n, "--random-seed", "1", "--output-artifact-dir", dir, "--ui", "none", "--no-server-metrics", "--no-gpu-telemetry"}
	if l.Rate > 0 {
		return append(args, "--request-rate", number(l.Rate), "--arrival-pattern", "constant")
	}
	return append(args, "--concurrency", strconv.Itoa(l.Concurrency))
}

func readAIPerf(dir, output string, l load) (figures, error) {
	type statistics struct{ Avg, P50, P99 float64 }
	var r struct {
		TTFT     statistics `json:"time_to_first_token"`
		ITL      statistics `json:"inter_chunk_latency"` // of all chunks; its inter_token_latency is a mean per request
		Count    statistics `json:"request_count"`
		Errors   statistics `json:"error_request_count"`
		Duration statistics `json:"benchmark_duration"`
	}
	if err := results.ReadJSON(filepath.Join(dir, "profile_export_aiperf.json"), &r); err != nil {
		return figures{}, err
	}
	of := func(s statistics) [3]float64 { return [3]float64{s.Avg, s.P50, s.P99} }
	completed := int(r.Count.Avg)
	return figures{
		Completed: completed, Failed: max(int(r.Errors.Avg), l.Requests-completed), Duration: r.Duration.Avg,
		TTFT: of(r.TTFT), ITL: of(r.ITL), Says: warnings(output),
	}, nil
}

// doubts match what a client may say about its own accuracy, variable what differs
// between two messages of one kind.
var (
	doubts   = regexp.MustCompile(`(?i)inaccurate|degraded|saturat|fall\w* behind|keep up|overload|too long`)
	variable = regexp.MustCompile(`^[0-9:.]+ |_[0-9a-f]{8}|[0-9][0-9.,]*| \(\w+\.py:[0-9]+\)`)
)

// warnings returns what a client says about its own accuracy: the first message
// of each kind and their number.
func warnings(output string) string {
	count, first := map[string]int{}, map[string]string{}
	var kinds []string
	for line := range strings.Lines(output) {
		if !doubts.MatchString(line) {
			continue
		}
		line = strings.TrimSpace(line)
		kind := variable.ReplaceAllString(line, "")
		if count[kind]++; count[kind] == 1 {
			kinds, first[kind] = append(kinds, kind), line
		}
	}
	var found []string
	for _, kind := range kinds[:min(len(kinds), 3)] {
		found = append(found, fmt.Sprintf("%s (%d times)", first[kind], count[kind]))
	}
	return strings.Join(found, "\n")
}
