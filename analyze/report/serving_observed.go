package report

import (
	"fmt"
	"strconv"

	"moontide/analyze/run"
	"moontide/trace/stats"
)

// server tells the server's own figures.
func (b *servingBlock) server(s *run.ObservedServer) {
	if s.Scrapes+s.Failures == 0 {
		return
	}
	head := "Server's own figures"
	if s.Scrapes > 0 {
		head += fmt.Sprintf(": %s, %s of %s", oneLine(s.Engine), count(s.Scrapes, "answer"), count(max(s.Engines, 1), "engine"))
	}
	b.WriteString(head + "\n")
	b.gauge("KV cache in use", s.KVUse, s.KVUseMax, percentage)
	b.gauge("running requests", s.Running, s.Running, rounded)
	b.gauge("waiting requests", s.Waiting, s.Waiting, rounded)
	if hit, queried := s.HitTokens, s.QueriedTokens; hit.Set && queried.Set {
		share := ""
		if queried.Value > 0 {
			share = ", " + percentage(float64(hit.Value)/float64(queried.Value))
		}
		b.own("cached tokens", strconv.Itoa(hit.Value), fmt.Sprintf("of %d looked up during the run%s", queried.Value, share))
	}
	b.gauge("cache hit rate", s.HitRate, s.HitRate, percentage)
	if s.Preemptions.Set {
		b.own("preemptions", strconv.Itoa(s.Preemptions.Value), "during the run")
	}
	if s.CapacityTokens > 0 {
		b.own("KV cache tokens", strconv.Itoa(s.CapacityTokens), "the room of all engines")
	}
	if s.Failures > 0 {
		b.own("not answered", strconv.Itoa(s.Failures), "e.g. "+oneLine(s.Failure))
	}
	b.WriteString("\n")
}

// gauge tells the mean and the largest of a value that goes up and down.
func (b *servingBlock) gauge(name string, mean, most stats.Sample, show func(float64) string) {
	if mean.Count > 0 {
		b.own(name, show(mean.Mean), "mean, at most "+show(most.Max))
	}
}

func percentage(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + " %" }

func rounded(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// serverJSON is what summary.json says of the server's own figures, or null.
func serverJSON(s *run.ObservedServer) any {
	if s.Scrapes+s.Failures == 0 {
		return nil
	}
	keys := map[string]any{
		"engine": s.Engine, "engines": s.Engines, "answers": s.Scrapes, "failures": s.Failures,
		"queried_tokens":  orNull(s.QueriedTokens.Value, s.QueriedTokens.Set),
		"hit_tokens":      orNull(s.HitTokens.Value, s.HitTokens.Set),
		"preemptions":     orNull(s.Preemptions.Value, s.Preemptions.Set),
		"block_size":      orNull(s.BlockSize, s.BlockSize > 0),
		"capacity_tokens": orNull(s.CapacityTokens, s.CapacityTokens > 0),
	}
	for name, d := range map[string]stats.Sample{
		"kv_use": s.KVUse, "kv_use_of_fullest": s.KVUseMax, "running": s.Running, "waiting": s.Waiting, "hit_rate": s.HitRate,
	} {
		keys["mean_"+name] = numberOr(d.Mean, d.Count > 0)
		keys["max_"+name] = numberOr(d.Max, d.Count > 0)
	}
	return keys
}

// clientJSON is what summary.json says of the client itself, or null.
func clientJSON(c *run.ObservedClient) any {
	if c.Samples == 0 {
		return nil
	}
	return map[string]any{
		"samples": c.Samples, "mean_cpu": number(c.CPU), "max_machine_share": number(c.MachineShare.Max),
		"mean_machine_busy": numberOr(c.MachineBusy.Mean, c.MachineBusy.Max > 0), "max_machine_busy": numberOr(c.MachineBusy.Max, c.MachineBusy.Max > 0),
		"gc_pauses": c.GCPauses, "max_gc_pause_ms": number(c.GCPauseMaxMS),
		"median_sched_p99_ms": number(c.SchedMS.Quantile(0.5)), "max_sched_p99_ms": number(c.SchedMS.Max),
		"max_rss_bytes": c.RSSBytes,
	}
}
