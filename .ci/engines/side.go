package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/montanaflynn/stats"

	"moontide/.ci/results"
)

// seen is what a client reports of a run, and the server's metrics of the same run.
type seen struct {
	TTFT       float64 `json:"ttft_ms"` // means
	ServerTTFT float64 `json:"server_ttft_ms"`
	TPOT       float64 `json:"tpot_ms"`
	ServerTPOT float64 `json:"server_tpot_ms"`
	Input      int     `json:"input_tokens"`
	Output     int     `json:"output_tokens"`
	Server     [2]int  `json:"server_tokens"` // input, output
}

// pair is a run of each client.
type pair struct {
	Moontide seen `json:"moontide"`
	Peer     seen `json:"peer"`
}

const (
	sidePairs = 5
	sideN     = 100
	sideISL   = 256
	sideOSL   = 64
	sideGap   = 200.0 // milliseconds between requests
)

// sideBySide runs moontide and vllm bench serve in turns, and compares each with the
// server's histograms of its run.
func sideBySide(s *session) error {
	var distance [2][]float64
	for i := range sidePairs {
		var p pair
		var err error
		if p.Moontide, err = s.sideMoontide(i); err != nil {
			return err
		}
		if p.Peer, err = s.sidePeer(i); err != nil {
			return err
		}
		s.pairs = append(s.pairs, p)
		s.within(fmt.Sprintf("mean TPOT, run %d", i+1), p.Moontide.ServerTPOT, p.Moontide.TPOT, 0.01, "ms")
		distance[0] = append(distance[0], math.Abs(p.Moontide.TTFT-p.Moontide.ServerTTFT))
		distance[1] = append(distance[1], math.Abs(p.Peer.TTFT-p.Peer.ServerTTFT))
		s.equal(fmt.Sprintf("totals, run %d", i+1), fmt.Sprint(p.Moontide.Server), fmt.Sprint([2]int{p.Moontide.Input, p.Moontide.Output}))
		s.equal(fmt.Sprintf("totals of both, run %d", i+1), fmt.Sprint(p.Peer.Input, p.Peer.Output), fmt.Sprint(p.Moontide.Input, p.Moontide.Output))
	}
	ours, _ := stats.Median(distance[0])
	theirs, _ := stats.Median(distance[1])
	s.law("mean TTFT, distance from the server's, median of the pairs", fmt.Sprintf("at most vllm bench serve's %.3f ms", theirs), fmt.Sprintf("%.3f ms", ours), ours <= theirs)
	return nil
}

// judged fills in the server's figures.
func (x *seen) judged(grew page) {
	x.ServerTTFT, x.ServerTPOT = grew.mean("vllm:time_to_first_token_seconds"), grew.mean("vllm:request_time_per_output_token_seconds")
	x.Server = [2]int{int(grew["vllm:prompt_tokens_total"]), int(grew["vllm:generation_tokens_total"])}
}

// sideLoad is the load of a run: a first request that moontide does not measure, and
// after a pause the others.
func sideLoad() []row {
	const pause = 4000
	rows := equal(sideN+1, sideISL, sideOSL, sideGap)
	for j := range rows[1:] {
		rows[j+1].Timestamp += pause - sideGap
	}
	return rows
}

// sideMoontide replays the load. In its pause, the server's metrics have the probe
// and the first request behind them.
func (s *session) sideMoontide(i int) (x seen, err error) {
	rows := sideLoad()
	scraped := make(chan page, 1)
	go func() {
		time.Sleep(2 * time.Second)
		p, err := s.server.metrics()
		if err != nil {
			p = nil
		}
		scraped <- p
	}()
	o, err := s.replay(fmt.Sprint("moontide-", i), rows, "--warmup-time", "2s")
	if err != nil {
		return x, err
	}
	before := <-scraped
	if err := o.ran(); err != nil {
		return x, err
	}
	after, err := s.server.metrics()
	if err != nil {
		return x, err
	}
	grew := after.since(before)
	if n := grew["vllm:time_to_first_token_seconds_count"]; n != sideN {
		return x, fmt.Errorf("the server's metrics have %v requests of the run, not %d", n, sideN)
	}
	x = seen{TTFT: o.summary.MeanTTFT, TPOT: o.summary.MeanTPOT, Input: o.summary.Input, Output: o.summary.Output}
	x.judged(grew)
	return x, nil
}

// benchServe has vllm bench serve replay a trace, and reads its result. The seed
// chooses the tokens of the prompts.
func (s *session) benchServe(name string, seed int, trace string, n int, result any) (page, error) {
	dir, err := s.folder(name)
	if err != nil {
		return nil, err
	}
	before, err := s.server.metrics()
	if err != nil {
		return nil, err
	}
	args := []string{"bench", "serve", "--backend", "openai", "--base-url", s.server.url, "--model", s.server.opts.model.name,
		"--tokenizer", filepath.Join(s.tools.models, s.server.opts.model.name), "--disable-tqdm", "--percentile-metrics", "ttft,tpot,itl,e2el",
		"--save-result", "--save-detailed", "--result-dir", filepath.Dir(dir), "--result-filename", filepath.Base(dir) + ".json",
		"--dataset-name", "timed_trace", "--dataset-path", trace, "--num-prompts", strconv.Itoa(n),
		"--timed-trace-chunk-hash-size", strconv.Itoa(traceBlock), "--timed-trace-sec-multiplier", "0.001"}
	cmd := preferred(filepath.Join(s.tools.vllm, "bin", "vllm"), args...)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", fmt.Sprint("PYTHONHASHSEED=", seed))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("vllm bench serve: %w: %.300s", err, out)
	}
	after, err := s.server.metrics()
	if err != nil {
		return nil, err
	}
	return after.since(before), results.ReadJSON(dir+".json", result)
}

// sidePeer has vllm bench serve send the same load, which needs no probe, as a trace:
// its random prompts do not all have the length that was asked for.
func (s *session) sidePeer(i int) (x seen, err error) {
	path := filepath.Join(s.tools.out, "side.jsonl")
	if err := writeTrace(path, sideLoad()[1:]); err != nil {
		return x, err
	}
	var r summary
	grew, err := s.benchServe(fmt.Sprint("peer-", i), i+1, path, sideN, &r)
	if err != nil {
		return x, err
	}
	if n := grew["vllm:time_to_first_token_seconds_count"]; n != sideN {
		return x, fmt.Errorf("vllm bench serve sent %v requests, not %d", n, sideN)
	}
	x = seen{TTFT: r.MeanTTFT, TPOT: r.MeanTPOT, Input: r.Input, Output: r.Output}
	x.judged(grew)
	return x, nil
}

// timedTrace has both clients replay one trace. vllm bench serve cuts blocks to
// other tokens where they are partly filled, so all blocks are full.
func timedTrace(s *session) error {
	rows := shared(40, 300)
	for i := range rows {
		rows[i].ISL = len(rows[i].IDs) * traceBlock
	}
	o, ourGrowth, err := s.measured("moontide", rows)
	if err != nil {
		return err
	}
	s.counts(o, prompts(rows, 0, 0))
	var r struct {
		Input  []int `json:"input_lens"`
		Output []int `json:"output_lens"`
	}
	grew, err := s.benchServe("peer", 100, filepath.Join(filepath.Dir(o.dir), "moontide.jsonl"), len(rows), &r)
	if err != nil {
		return err
	}
	var ours [][2]int
	for _, rec := range o.records {
		ours = append(ours, [2]int{rec.Counts.Input.Value, rec.Counts.Output.Value})
	}
	same := 0
	for i := range min(len(ours), len(r.Input), len(r.Output)) {
		if ours[i] == [2]int{r.Input[i], r.Output[i]} {
			same++
		}
	}
	s.equal("requests with the input and output tokens of vllm bench serve", len(rows), same)
	hits := "vllm:prefix_cache_hits_total"
	s.equal("cached tokens of vllm bench serve's run, by the server", grew[hits], ourGrowth[hits])
	return nil
}
