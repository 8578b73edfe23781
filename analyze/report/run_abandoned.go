package report

import (
	"fmt"

	"moontide/analyze/report/doc"
	"moontide/analyze/run"
)

// addAbandoned adds the requests that the client closed, and how the server reacted
// to it.
func (r Run) addAbandoned(d *doc.Document) {
	a, server := r.Result.Abandoned, &r.Result.Samples.Server
	if a.Requests == 0 {
		return
	}
	s := d.Section("Abandoned requests")
	s.Text("The client closed these requests because they were not complete when the simulated user left. They count as neither completed nor failed, and are excluded from latencies, throughput and cached tokens.")
	share := run.MustMetric("abandoned_share").Value(r.Result)
	s.Row("Abandoned", doc.Int(a.Requests), "requests", doc.PercentOr(share)+" % of those that ended")
	s.Row("Before the first token", doc.Int(a.Requests-a.Answered), "requests", "")
	s.Row("Received until then", doc.Int(a.Tokens), "tokens", fmt.Sprintf("by %s", doc.Count(a.Answered, "request")))
	if n := server.Aborted; n.Set {
		s.Row("Aborted by the server", doc.Int(n.Value), "requests", "by its own counter, during the run")
	}
	if n := server.RunningAfter; n.Set {
		s.Row("Still running", doc.Int(n.Value), "requests", "by the server's last metrics")
	}
}

// abandonedJSON returns null if no request was abandoned.
func abandonedJSON(r *run.Result) any {
	a := r.Abandoned
	if a.Requests == 0 {
		return nil
	}
	return jsonObject(map[string]any{
		"requests": a.Requests, "share": run.MustMetric("abandoned_share").Value(r),
		"answered": a.Answered, "tokens": a.Tokens,
		"aborted_by_server": r.Samples.Server.Aborted, "running_after": r.Samples.Server.RunningAfter,
	})
}
