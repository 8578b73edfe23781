package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/evidence"
	"moontide/replay/openai"
	"moontide/replay/runfile"
)

const serverMetricsFlag = "server-metrics"

// thresholdFlags say when a run is INVALID; it is SUSPECT from a fifth on.
func thresholdFlags() []cli.Flag {
	d := run.DefaultThresholds
	return []cli.Flag{
		&cli.DurationFlag{Name: "max-lag", Category: inValidity, DefaultText: fmt.Sprint(d.MaxLagMS, "ms"), Usage: "INVALID if the client lag p99 exceeds both `TIME` and --max-lag-share; SUSPECT from a fifth of it"},
		&cli.Float64Flag{Name: "max-lag-share", Category: inValidity, DefaultText: fmt.Sprint(d.MaxLagShare), Usage: "INVALID if the client lag p99 exceeds both --max-lag and `SHARE` of the median TTFT"},
		&cli.Float64Flag{Name: "max-prompts-off", Category: inValidity, DefaultText: fmt.Sprint(d.MaxPromptsOff), Usage: "INVALID if more than `SHARE` of the prompts are off by more than 1 % in length"},
	}
}

// evidenceFlags say what is watched while a replay lasts, and what its verdict
// goes by.
func evidenceFlags() []cli.Flag {
	return append(thresholdFlags(), &cli.StringSliceFlag{
		Name: serverMetricsFlag, Category: inValidity,
		Usage: "Prometheus metrics `URL` of the server (vLLM, SGLang, TensorRT-LLM, Dynamo) to record every second; repeatable",
	})
}

func checkEvidenceFlags(c *cli.Context) error {
	if err := checkThresholdFlags(c); err != nil {
		return err
	}
	if _, err := evidence.New(c.StringSlice(serverMetricsFlag), nil); err != nil {
		return misused("%s: --%s: %w", c.Command.Name, serverMetricsFlag, err)
	}
	return nil
}

func checkThresholdFlags(c *cli.Context) error {
	verb := c.Command.Name
	if c.IsSet("max-lag") && c.Duration("max-lag") <= 0 {
		return misused("%s: --max-lag is not a positive time: %v", verb, c.Duration("max-lag"))
	}
	for _, flag := range []string{"max-lag-share", "max-prompts-off"} {
		if share := c.Float64(flag); c.IsSet(flag) && !(share > 0 && share <= 1) {
			return misused("%s: --%s is not a share above 0 and up to 1: %v", verb, flag, share)
		}
	}
	return nil
}

// thresholdsOf are what the flags say, and else what was there.
func thresholdsOf(c *cli.Context, t runfile.Thresholds) runfile.Thresholds {
	if c.IsSet("max-lag") {
		t.MaxLagMS = milliseconds(c.Duration("max-lag"))
	}
	if c.IsSet("max-lag-share") {
		t.MaxLagShare = c.Float64("max-lag-share")
	}
	if c.IsSet("max-prompts-off") {
		t.MaxPromptsOff = c.Float64("max-prompts-off")
	}
	return t
}

// watcher keeps the evidence of a run while it lasts.
type watcher struct {
	client            *openai.Client
	sampler           *evidence.Sampler
	delays            func() runfile.ReadDelay
	stampErrorsBefore openai.StampErrors
}

// observe begins to sample a run, into its folder.
func observe(c *cli.Context, folder *runfile.Writer, runner *replay.Runner, client *openai.Client) (*watcher, error) {
	cfg := evidence.Config{Write: folder.Sample, Status: runner.Status, ReadDelay: readDelays(client)}
	if urls := c.StringSlice(serverMetricsFlag); len(urls) > 0 {
		var roots *x509.CertPool
		var err error
		if c.IsSet("ca-file") {
			if roots, err = readCAs(c.String("ca-file")); err != nil {
				return nil, err
			}
		}
		scraper, err := evidence.New(urls, roots)
		if err != nil {
			return nil, err
		}
		cfg.Server = func(ctx context.Context) (runfile.ServerFigures, error) { return scraper.Scrape(ctx) }
	}
	return &watcher{client: client, sampler: evidence.Start(cfg), delays: readDelays(client), stampErrorsBefore: client.StampErrors()}, nil
}

// end notes in run.json what no record tells. Its error is of the samples.
func (w *watcher) end(info *runfile.Run) error {
	info.ReadDelay = w.delays()
	m := w.client.StampErrors().Since(w.stampErrorsBefore)
	info.Merges = runfile.Merges{Chunks: m.Chunks, Merged: m.Shared.Count(), P99MS: milliseconds(m.Quantile(0.99)), MaxMS: milliseconds(m.Quantile(1))}
	return w.sampler.Stop()
}

// readDelays tells how late the client read since the call before.
func readDelays(client *openai.Client) func() runfile.ReadDelay {
	before := client.ReadDelay()
	return func() runfile.ReadDelay {
		now := client.ReadDelay()
		d := now.Since(before)
		before = now
		return runfile.ReadDelay{Reads: d.Count(), MedianMS: milliseconds(d.Quantile(0.5)), P99MS: milliseconds(d.Quantile(0.99)), MaxMS: milliseconds(d.Quantile(1))}
	}
}

// maskQuery leaves out of a URL what may be a secret.
func maskQuery(url string) string {
	place, _, queried := strings.Cut(url, "?")
	if queried {
		return place + "?***"
	}
	return place
}
