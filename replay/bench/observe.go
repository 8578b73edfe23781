package bench

import (
	"context"

	"moontide/replay"
	"moontide/replay/evidence"
	"moontide/replay/openai"
	"moontide/replay/runfile"
)

// watcher collects the evidence of a run while it is in progress.
type watcher struct {
	client            *openai.Client
	sampler           *evidence.Sampler
	delays            func() runfile.ReadDelay // of the whole run
	stampErrorsBefore openai.StampErrors
}

// observe starts recording a run in its folder.
func observe(ctx context.Context, cfg *Config, folder *runfile.Writer, runner *replay.Runner, client *openai.Client) (*watcher, error) {
	if err := folder.OpenFiles(); err != nil {
		return nil, err
	}
	sampling := evidence.Config{Write: folder.Sample, Status: runner.Status, ReadDelay: readDelays(client)}
	if len(cfg.ServerMetrics) > 0 {
		scraper, err := evidence.New(cfg.ServerMetrics, cfg.Client.TLSConfig())
		if err != nil {
			return nil, err
		}
		sampling.Server = scraper.Scrape
	}
	return &watcher{client: client, delays: readDelays(client), stampErrorsBefore: client.StampErrors(), sampler: evidence.Start(ctx, sampling)}, nil
}

// end adds to info what is not in the records. Its error is that of the
// samples.
func (w *watcher) end(info *runfile.Run) error {
	info.ReadDelay = w.delays()
	m := w.client.StampErrors().Since(w.stampErrorsBefore)
	info.Merges = runfile.Merges{Chunks: m.Chunks, Merged: m.Shared.Count(), P99MS: ms(m.Quantile(0.99)), MaxMS: ms(m.Quantile(1))}
	return w.sampler.Stop()
}

// readDelays returns a function that reports how late the client read since its
// last call.
func readDelays(client *openai.Client) func() runfile.ReadDelay {
	before := client.ReadDelay()
	return func() runfile.ReadDelay {
		now := client.ReadDelay()
		d := now.Since(before)
		before = now
		return runfile.ReadDelay{Reads: d.Count(), MedianMS: ms(d.Quantile(0.5)), P99MS: ms(d.Quantile(0.99)), MaxMS: ms(d.Quantile(1))}
	}
}
