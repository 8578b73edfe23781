package main

import (
	"cmp"
	"fmt"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/replay/evidence"
	"moontide/replay/runfile"
	"moontide/trace"
)

const serverMetricsFlag = "server-metrics"

var serverBlockSizeFlag = &cli.IntFlag{
	Name: "server-block-size", Category: inValidity, DefaultText: "from --server-metrics",
	Usage: "block size of the server's prefix cache, in `TOKENS`, to predict cached tokens exactly",
}

// shareThresholds are the limits of the verdict that are shares, from 0 to 1.
var shareThresholds = []struct {
	flag, usage string
	of          func(t *runfile.Thresholds) *float64
}{
	{"max-lag-share", "mark the run INVALID if p99 client lag exceeds both --max-lag and `SHARE` of the median TTFT", func(t *runfile.Thresholds) *float64 { return &t.MaxLagShare }},
	{"max-failed", "mark the run INVALID if more than `SHARE` of the requests fail, SUSPECT from a fifth of it", func(t *runfile.Thresholds) *float64 { return &t.MaxFailed }},
	{"max-prompts-off", "mark the run INVALID if more than `SHARE` of the prompts differ by more than 1 % from their ISL", func(t *runfile.Thresholds) *float64 { return &t.MaxPromptsOff }},
	{"max-answers-off", "mark the run INVALID if more than `SHARE` of the answers do not have the requested length", func(t *runfile.Thresholds) *float64 { return &t.MaxAnswersOff }},
}

// thresholdFlags set the limits of the verdict.
func thresholdFlags() []cli.Flag {
	d := measure.DefaultThresholds
	flags := []cli.Flag{
		&cli.DurationFlag{Name: "max-lag", Category: inValidity, DefaultText: fmt.Sprint(d.MaxLagMS, "ms"), Usage: "mark the run INVALID if p99 client lag exceeds both `TIME` and --max-lag-share, SUSPECT from a fifth of the larger one"},
	}
	for _, s := range shareThresholds {
		flags = append(flags, &cli.Float64Flag{Name: s.flag, Category: inValidity, DefaultText: fmt.Sprint(*s.of(&d)), Usage: s.usage})
	}
	return flags
}

// serverFlags returns the flags for the server's metrics and cache.
func serverFlags() []cli.Flag {
	return []cli.Flag{serverBlockSizeFlag, repeatable(cli.GenericFlag{
		Name: serverMetricsFlag, Category: inValidity,
		Usage: "Prometheus metrics `URL` of the server (vLLM, SGLang, TensorRT-LLM, Dynamo, llama.cpp) to record every second; repeatable",
	})}
}

// thresholdsOf returns t with the limits set by flags.
func thresholdsOf(c *cli.Context, t runfile.Thresholds) runfile.Thresholds {
	t.MaxLagMS = cmp.Or(trace.MS(c.Duration("max-lag")), t.MaxLagMS)
	for _, s := range shareThresholds {
		limit := s.of(&t)
		*limit = cmp.Or(c.Float64(s.flag), *limit)
	}
	return t
}

// windowOf returns w with the times set by flags.
func windowOf(c *cli.Context, w runfile.Window) runfile.Window {
	if c.IsSet(warmupTimeFlag.Name) {
		w.WarmupSeconds = c.Duration(warmupTimeFlag.Name).Seconds()
	}
	if c.IsSet(cooldownTimeFlag.Name) {
		w.CooldownSeconds = c.Duration(cooldownTimeFlag.Name).Seconds()
	}
	return w
}

func serverMetrics(c *cli.Context) ([]string, error) {
	urls := textsOf(c, serverMetricsFlag)
	if _, err := evidence.New(urls, nil); err != nil {
		return nil, misused("--%s: %w", serverMetricsFlag, err)
	}
	return urls, nil
}
