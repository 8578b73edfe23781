package report

import (
	"fmt"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/trace/stats"
)

var causeWords = map[measure.Cause]string{
	measure.NotShared: "no earlier prompt has these tokens",
	measure.Evicted:   "computed before, but no longer cached",
	measure.Unknown:   "not computed yet, less than a block, or of a prompt with another length or order",
	measure.Warm:      "more than predicted: cached before this run",
}

// attribution describes a cause and the other causes that fit.
func attribution(cause measure.Cause, r *measure.Result) string {
	words, server := causeWords[cause], &r.Samples.Server
	if cause == measure.Evicted && (server.Engines != 1 || r.Cache.Prediction.Targets > 1) {
		words += ", or another engine has it"
	}
	if cause == measure.Evicted && server.Restarts > 0 {
		words += ", or was lost when the server restarted"
	}
	return words
}

func (r Run) addCache(d *doc.Document) {
	p := &r.Result.Cache.Prediction
	if p.Requests == 0 {
		return
	}
	s := d.Section("Prefix cache, predicted and measured")
	s.Row("Predicted cached tokens", doc.Int(p.Predicted), "", "infinite cache, "+blocksOf(p))
	s.Row("Measured cached tokens", doc.Int(p.Measured), "", fmt.Sprintf("as predicted for %s of %s requests", doc.Int(p.Equal), doc.Int(p.Requests)))
	if f, some := predictionFigure(p); some {
		defer s.Figures(f)
	}
	if p.Measured == 0 && p.Predicted > 0 {
		s.Text("Nothing was cached: the server may have no prefix cache, or does not report it.")
		return
	}
	if p.AsText > 0 {
		s.Text(fmt.Sprintf("Prompts contain responses as text, which may encode to other tokens than were generated: up to %s fewer cached tokens are as predicted.", doc.Int(p.AsText)))
	}
	if rest := p.Shared - p.Predicted; rest > 0 {
		s.Row("Never reusable", doc.Int(rest), "tokens", "shared tokens in a partial block, or at the end of a prompt")
	}
	if p.TemplateTokens > 0 {
		s.Row("Chat template", doc.Int(p.TemplateTokens), "tokens", "more per prompt")
	}
	if n := p.FromAnswers; n.Set {
		s.Text(fmt.Sprintf("With responses from the trace, %s of these %s cached tokens would have been recomputed.", doc.Int(n.Value), doc.Int(p.Measured)))
	}
	t := doc.Table{Columns: []string{"cache misses", "requests", "tokens", "cause"}, Left: doc.AllLeft}
	for _, cause := range measure.Causes {
		if n, some := p.Causes[cause]; some {
			t.Add(string(cause), doc.Int(n.Requests), doc.Int(n.Tokens), attribution(cause, r.Result))
		}
	}
	s.Table(t)
}

func blocksOf(p *measure.CachePrediction) string {
	switch {
	case p.BlockSize > 0:
		return fmt.Sprintf("in server blocks of %d tokens", p.BlockSize)
	case p.AssumedBlock > 0:
		return fmt.Sprintf("assuming blocks of %d tokens: the server's block size is unknown, at most %s", p.AssumedBlock, doc.Int(p.MaxBlockSize))
	case p.Measured > 0:
		return fmt.Sprintf("not rounded to blocks: the block size is unknown, at most %s tokens", doc.Int(p.MaxBlockSize))
	}
	return "not rounded to blocks: the block size is unknown"
}

func predictionFigure(p *measure.CachePrediction) (figure.Figure, bool) {
	if len(p.Each) == 0 || p.Predicted+p.Measured == 0 {
		return figure.Figure{}, false
	}
	points := figure.Series{Name: "requests", Kind: figure.Points}
	for _, e := range p.Each {
		points.Add(float64(e.Predicted), float64(e.Measured), "")
	}
	return against("Cached prompt tokens of each request", "Predicted", "Measured", figure.Axis{Unit: "tokens"}, points), true
}

func addServer(d *doc.Document, o *measure.ServerMetrics) {
	if o.Scrapes+o.Failures == 0 {
		return
	}
	s := d.Section("Server metrics")
	if o.Scrapes > 0 {
		s.Text(fmt.Sprintf("Engine %s: %s of %s.", o.Engine, doc.Count(o.Scrapes, "scrape"), doc.Count(max(o.Engines, 1), "engine")))
	}
	gauge := func(name string, mean, most stats.Sample, scale float64, unit string) {
		if mean.Count > 0 {
			s.Row(name, doc.Fixed(scale*mean.Mean, 2), unit, "mean, max "+doc.Fixed(scale*most.Max, 2)+" "+unit)
		}
	}
	gauge("KV cache usage", o.KVUse, o.KVUseMax, 100, "%")
	gauge("Running requests", o.Running, o.Running, 1, "")
	gauge("Waiting requests", o.Waiting, o.Waiting, 1, "")
	if hit, queried := o.HitTokens, o.QueriedTokens; hit.Set && queried.Set {
		share := ""
		if queried.Value > 0 {
			share = ", " + doc.Share(hit.Value, queried.Value)
		}
		s.Row("Cached tokens", doc.Int(hit.Value), "", "of "+doc.Int(queried.Value)+share)
	}
	gauge("Cache hit rate", o.HitRate, o.HitRate, 100, "%")
	if o.Preemptions.Set {
		s.Row("Preemptions", doc.Int(o.Preemptions.Value), "", "during the run")
	}
	if o.CapacityTokens > 0 {
		s.Row("KV cache capacity", doc.Int(o.CapacityTokens), "tokens", "of all engines")
	}
	if o.Failures > 0 {
		s.Row("Failed scrapes", doc.Int(o.Failures), "", "e.g. "+o.Failure)
	}
}

// Predictions returns a document whose Data has a row per request. The result must
// have been computed with Options.EachPrediction.
func Predictions(p measure.CachePrediction) *doc.Document {
	d := doc.New("Cached prompt tokens", "")
	d.Data.Columns = []string{"row", "target_index", "input_length", "input_tokens", "shared_tokens", "predicted_tokens", "cached_tokens", "cause"}
	for _, e := range p.Each {
		d.Data.Add(e.Row, e.Target, e.ISL, e.Input, e.Shared, e.Predicted, e.Measured, string(e.Cause))
	}
	return d
}
