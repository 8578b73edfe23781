package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

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

// The streaming tasks. The endpoint sends the first token 100 ms after a request and then
// one every TPOT, each stream at its own phase.
var loads = []load{
	{Name: "start", Requests: 1, Concurrency: 1, OSL: 2, TPOT: 1},
	{Name: "1,000 streams", Requests: 2000, Rate: 200, Concurrency: 1020, OSL: 250, TPOT: 20, TTFT: 100},
	{Name: "10,800 streams", Requests: 21_600, Rate: 1080, Concurrency: 10_870, OSL: 62, TPOT: 163, TTFT: 100},
	{Name: "one-token answers", Requests: 5000, Concurrency: 64, OSL: 1, TPOT: 1},
}

// client is a load generator. Words in capitals of its arguments stand for what differs
// between machines and runs.
type client struct {
	name         string
	env          []string
	args         string
	rate, closed string // arguments for a load with a rate, and one without
	result       string // pattern of the file with its results
	completed    string // the path of a figure in it; so are the next
	duration     string
	ttft, itl    [3]string // mean, median, p99
}

const (
	moontideName = "moontide"
	vllmName     = "vllm bench serve"
	aiperfName   = "AIPerf"
)

var (
	vllmTTFT = [3]string{"mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms"}
	vllmITL  = [3]string{"mean_itl_ms", "median_itl_ms", "p99_itl_ms"}
)

var clients = []client{
	{
		name: moontideName,
		args: "MOONTIDE bench --url URL --isl 16 --osl OSL --limit REQUESTS --out DIR/sweep",
		rate: "--rate RATE --arrival constant", closed: "--max-concurrency STREAMS",
		result: "sweep/*/summary.json", completed: "completed", duration: "duration", ttft: vllmTTFT, itl: vllmITL,
	},
	{
		name: vllmName, env: []string{"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1"},
		args: "VLLM/vllm bench serve --backend openai --base-url URL --model sim --tokenizer TOKENIZER --dataset-name random --random-input-len 16" +
			" --random-output-len OSL --ignore-eos --num-prompts REQUESTS --disable-tqdm --percentile-metrics ttft,tpot,itl,e2el --save-result" +
			" --result-dir DIR --result-filename result.json",
		rate:   "--request-rate RATE --burstiness 100000", // makes the gaps even
		closed: "--max-concurrency STREAMS",
		result: "result.json", completed: "completed", duration: "duration", ttft: vllmTTFT, itl: vllmITL,
	},
	{
		name: aiperfName, env: []string{"AIPERF_HTTP_CONNECTION_LIMIT=20000"},
		args: "AIPERF/aiperf profile --url URL --model sim --endpoint-type completions --streaming --tokenizer TOKENIZER --use-server-token-count" +
			" --use-legacy-max-tokens --isl 16 --isl-stddev 0 --osl OSL --osl-stddev 0 --extra-inputs ignore_eos:true --request-count REQUESTS" +
			" --num-dataset-entries REQUESTS --random-seed 1 --output-artifact-dir DIR --ui none --no-server-metrics --no-gpu-telemetry",
		rate: "--request-rate RATE --arrival-pattern constant", closed: "--concurrency STREAMS",
		result: "profile_export_aiperf.json", completed: "request_count.avg", duration: "benchmark_duration.avg",
		ttft: [3]string{"time_to_first_token.avg", "time_to_first_token.p50", "time_to_first_token.p99"},
		// Of all chunks; its inter_token_latency is a mean per request.
		itl: [3]string{"inter_chunk_latency.avg", "inter_chunk_latency.p50", "inter_chunk_latency.p99"},
	},
}

// command returns the words that send a load.
func (c client) command(l load) string {
	text := c.args + " " + c.closed
	if l.Rate > 0 {
		text = c.args + " " + c.rate
	}
	return strings.NewReplacer("OSL", fmt.Sprint(l.OSL), "REQUESTS", fmt.Sprint(l.Requests), "RATE", fmt.Sprint(l.Rate), "STREAMS", fmt.Sprint(l.Concurrency)).Replace(text)
}

// figures are the latencies that a client reports, in milliseconds.
type figures struct {
	Completed int        `json:"completed"`
	Duration  float64    `json:"duration_s"`
	TTFT      [3]float64 `json:"ttft_ms"` // mean, median, p99
	ITL       [3]float64 `json:"itl_ms"`
	Says      string     `json:"says,omitempty"` // about its own validity
}

// read reads the results of a client, and what it says about them.
func (c client) read(dir, output string) (*figures, error) {
	paths, _ := filepath.Glob(filepath.Join(dir, c.result))
	if len(paths) != 1 {
		return nil, fmt.Errorf("no result: %d files", len(paths))
	}
	var all results.Object
	if err := results.ReadJSON(paths[0], &all); err != nil {
		return nil, err
	}
	f := &figures{Completed: int(number(all, c.completed)), Duration: number(all, c.duration), Says: warnings(output)}
	for i := range f.TTFT {
		f.TTFT[i], f.ITL[i] = number(all, c.ttft[i]), number(all, c.itl[i])
	}
	if own, ok := all["moontide"].(results.Object); ok {
		f.Says = fmt.Sprint(own["verdict"])
		evidence, _ := own["evidence"].([]any)
		for _, e := range evidence {
			if e := e.(results.Object); e["level"] != "VALID" {
				text, _, _ := strings.Cut(fmt.Sprint(e["text"]), " (SUSPECT")
				f.Says += "; " + text
			}
		}
	}
	return f, nil
}

// number returns the number at a path of names, 0 if there is none.
func number(all results.Object, path string) float64 {
	name, rest, deeper := strings.Cut(path, ".")
	if inner, ok := all[name].(results.Object); ok && deeper {
		return number(inner, rest)
	}
	n, _ := all[name].(float64)
	return n
}

// doubts match what a client may say about its own accuracy, details what says nothing to
// a reader, numbers what else differs between two messages of one kind.
var (
	doubts  = regexp.MustCompile(`(?i)inaccurate|degraded|saturat|fall\w* behind|keep up|overload|too long`)
	details = regexp.MustCompile(`^[0-9:.]+ |_[0-9a-f]{8}| \(\w+\.py:[0-9]+\)`)
	numbers = regexp.MustCompile(`[0-9][0-9.,]*`)
)

// warnings returns what a client says about its own accuracy: the first messages of three
// kinds and their numbers.
func warnings(output string) string {
	count := map[string]int{}
	var kinds, first []string
	for line := range strings.Lines(output) {
		if doubts.MatchString(line) {
			line = strings.TrimSpace(details.ReplaceAllString(line, ""))
			kind := numbers.ReplaceAllString(line, "")
			if count[kind]++; count[kind] == 1 {
				kinds, first = append(kinds, kind), append(first, line)
			}
		}
	}
	for i, kind := range kinds {
		first[i] = fmt.Sprintf("%s (%d times)", first[i], count[kind])
	}
	return strings.Join(first[:min(len(first), 3)], "\n")
}
