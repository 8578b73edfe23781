package report_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// Blocks are those of the tools, line by line: a run with published results is
// printed as it was published. The block of vLLM is in the layout of version 0.32.0.
func TestPublishedBlocks(t *testing.T) {
	for name, test := range map[string]struct {
		block     report.Block
		published int
	}{"vllm": {report.VLLM, 1}, "dynamo": {report.Dynamo, 3}, "moreh": {report.Moreh, 6}} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/published_" + name + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			blocks := strings.Split(strings.TrimSpace(string(text)), "\n\n")
			if len(blocks) != test.published {
				t.Fatalf("%d blocks, want %d", len(blocks), test.published)
			}
			for _, want := range blocks {
				r := publishedRun(t, want)
				got, rest, _ := strings.Cut(strings.TrimLeft(written(t, report.Runs{r}.Block(test.block).WriteText), "\n"), "\n\n")
				if got != want {
					t.Errorf("%s\nwant\n%s", got, want)
				}
				if !strings.Contains(rest, "Simulated: ") || !strings.Contains(rest, "Verdict: VALID") {
					t.Errorf("after the block there is no simulated mark or no verdict:\n%s", rest)
				}
			}
		})
	}
}

// publishedRun returns a run with the results of a published block.
func publishedRun(t *testing.T, block string) report.Run {
	values := map[string]float64{}
	for line := range strings.SplitSeq(block, "\n") {
		if key, text, ok := strings.Cut(line, ":"); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatal(err)
			}
			values[strings.ToLower(key)] = value
		}
	}
	number := func(key string) float64 { return values[key] }
	count := func(key string) int { return int(number(key)) }
	rate := func(key string) trace.Opt[float64] {
		value, ok := values[key]
		return trace.Opt[float64]{Value: value, Set: ok}
	}
	r := report.Run{Result: &measure.Result{Parts: make([]measure.PartResult, count("number of worker processes")),
		Completed: count("successful requests"), Failed: count("failed requests"), Input: count("total input tokens"), Output: count("total generated tokens"),
		Duration:    time.Duration(number("benchmark duration (s)") * float64(time.Second)),
		RequestRate: rate("request throughput (req/s)"), OutputRate: rate("output token throughput (tok/s)"), TotalRate: rate("total token throughput (tok/s)"),
		PeakOutputRate: number("peak output token throughput (tok/s)"), PeakConcurrency: count("peak concurrent requests"),
	}}
	if goodput := rate("request goodput (req/s)"); goodput.Set {
		r.Result.Goodput = &measure.Goodput{Rate: goodput}
	}
	r.Info = runfile.Run{Outcome: runfile.Outcome{Ended: time.Unix(1, 0), Target: runfile.Target{Simulated: true}}}
	r.Info.Settings.MaxConcurrency, r.Info.Settings.Pacing.Rate = count("maximum request concurrency"), rate("request rate configured (rps)")
	if _, ok := values["warm-up time"]; ok {
		r.Info.Settings.Window = runfile.Window{WarmupSeconds: number("warm-up time"), CooldownSeconds: number("cool-down time")}
		r.Result.Window = measure.Span{From: time.Second, To: 2 * time.Second}
	}
	percentiles := map[float64]bool{}
	for latency, d := range map[string]*stats.Sample{"ttft": &r.Result.TTFT, "tpot": &r.Result.TPOT, "itl": &r.Result.ITL, "e2el": &r.Result.E2EL} {
		*d = publishedSample(values, latency, percentiles)
	}
	r.View.Percentiles = slices.Sorted(maps.Keys(percentiles))
	return r
}

// publishedSample returns a sample with the published mean and percentiles, to which
// it adds those found.
func publishedSample(values map[string]float64, latency string, percentiles map[float64]bool) stats.Sample {
	sorted := make([]float64, 101) // the values at the percentiles 0 to 100
	for p := range sorted {
		value, ok := values[fmt.Sprintf("p%d %s (ms)", p, latency)]
		switch {
		case ok:
			percentiles[float64(p)] = true
		case p == 50:
			value = values["median "+latency+" (ms)"]
		case p > 0:
			value = sorted[p-1]
		}
		sorted[p] = value
	}
	d := stats.Of(sorted)
	d.Mean = values["mean "+latency+" (ms)"]
	return d
}

// A block shows the latencies asked for in its own order, and says what its ITL is.
func TestBlockOptions(t *testing.T) {
	r := reported(t)[0]
	r.View.Latencies, r.View.Percentiles = []measure.Latency{measure.QueueTime, measure.ITL, measure.TTFT}, []float64{50}
	text := written(t, report.Runs{r}.Block(report.VLLM).WriteText)
	last := 0
	for _, line := range []string{
		"Time to First Token-", "Mean TTFT (ms): ", "P50 TTFT (ms): ", "-Inter-token Latency-", "P50 ITL (ms): ",
		"-Client-side Queueing-", "Mean Client Queue Time (ms): ", "\n======", "ITL: the gaps between token chunks", "Verdict: ",
	} {
		at := strings.Index(text, line)
		if at < last {
			t.Errorf("%q is at %d, the line before at %d", line, at, last)
		}
		last = at
	}
	if strings.Contains(text, "TPOT (ms)") {
		t.Error(text)
	}
	if err := report.VLLM.Check(r.View); err != nil {
		t.Error(err)
	}
	r.View.Latencies = []measure.Latency{measure.TTST}
	if err := report.VLLM.Check(r.View); err == nil || !strings.Contains(err.Error(), "ttst") {
		t.Errorf("the error of TTST in vLLM's block is %v", err)
	}
}
