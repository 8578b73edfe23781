package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/run"
	"moontide/replay/evidence"
	"moontide/replay/runfile"
)

const serverMetricsFlag = "server-metrics"

// thresholdFlags set the limits of the verdict.
func thresholdFlags() []cli.Flag {
	d := run.DefaultThresholds
	return []cli.Flag{
		&cli.DurationFlag{Name: "max-lag", Category: inValidity, DefaultText: fmt.Sprint(d.MaxLagMS, "ms"), Usage: "INVALID if the client lag p99 exceeds both `TIME` and --max-lag-share; SUSPECT from a fifth of it"},
		&cli.Float64Flag{Name: "max-lag-share", Category: inValidity, DefaultText: fmt.Sprint(d.MaxLagShare), Usage: "INVALID if the client lag p99 exceeds both --max-lag and `SHARE` of the median TTFT"},
		&cli.Float64Flag{Name: "max-prompts-off", Category: inValidity, DefaultText: fmt.Sprint(d.MaxPromptsOff), Usage: "INVALID if more than `SHARE` of the prompts are off by more than 1 % in length"},
	}
}

// evidenceFlags returns the flags for what a replay records and for the limits
// of its verdict.
func evidenceFlags() []cli.Flag {
	return append(thresholdFlags(), &cli.StringSliceFlag{
		Name: serverMetricsFlag, Category: inValidity,
		Usage: "Prometheus metrics `URL` of the server (vLLM, SGLang, TensorRT-LLM, Dynamo) to record every second; repeatable",
	})
}

// thresholdsOf returns t with the limits set by flags.
func thresholdsOf(c *cli.Context, t runfile.Thresholds) runfile.Thresholds {
	return runfile.Thresholds{
		MaxLagMS:      cmp.Or(milliseconds(c.Duration("max-lag")), t.MaxLagMS),
		MaxLagShare:   cmp.Or(c.Float64("max-lag-share"), t.MaxLagShare),
		MaxPromptsOff: cmp.Or(c.Float64("max-prompts-off"), t.MaxPromptsOff),
	}
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
	urls := c.StringSlice(serverMetricsFlag)
	if _, err := evidence.New(urls, nil); err != nil {
		return nil, misused("%s: --%s: %w", c.Command.Name, serverMetricsFlag, err)
	}
	return urls, nil
}

// maskQuery removes the query of a URL, which may be secret.
func maskQuery(url string) string {
	place, _, queried := strings.Cut(url, "?")
	if queried {
		return place + "?***"
	}
	return place
}
