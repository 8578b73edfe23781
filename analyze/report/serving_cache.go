package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"moontide/analyze/run"
)

// causeWords say what a difference between predicted and measured cached tokens
// comes from.
var causeWords = map[run.Cause]string{
	run.Cold:        "fewer: the prefix was sent before, but not computed yet",
	run.Pending:     "fewer: the prefix was computed while the request waited: too late for it, or gone again",
	run.Evicted:     "fewer: the prefix was computed before and is gone",
	run.Elsewhere:   "fewer: the prefix was sent to another URL",
	run.OtherLength: "other: the server counted another prompt length than was meant",
	run.Overtaken:   "more: a request that was sent later was computed first",
	run.Warm:        "more: cached by nothing of this run",
	run.Unknown:     "more: the trace does not say what the prompt shares",
}

// prediction tells what the prefix cache had against what it could have had.
func (b *servingBlock) prediction(r *run.Result) {
	p := &r.Cache.Prediction
	if p.Requests == 0 {
		return
	}
	b.WriteString("Prefix cache, predicted and measured\n")
	b.own("predicted tokens", strconv.Itoa(p.Predicted), "of a cache that begins empty and never evicts, "+blocksOf(p))
	b.own("measured tokens", strconv.Itoa(p.Measured), fmt.Sprintf("as predicted for %d of %d requests", p.Equal, p.Requests))
	if p.Measured == 0 && p.Predicted > 0 {
		b.WriteString("  Nothing was cached: the server may keep no prefix cache, or not tell of it.\n\n")
		return
	}
	if rest := p.Shared - p.Predicted; rest > 0 {
		b.own("never reusable", strconv.Itoa(rest), "shared tokens at the end of a prefix that fill no block, or are the last of a prompt")
	}
	if p.TemplateTokens > 0 {
		b.own("chat template", strconv.Itoa(p.TemplateTokens), "tokens more in most prompts than the trace says")
	}
	for _, cause := range run.Causes {
		d, some := p.Causes[cause]
		if !some {
			continue
		}
		words := causeWords[cause]
		if engines := r.Observed.Server.Engines; cause == run.Evicted && (engines == 0 || engines > p.Targets) {
			words += ", or another engine behind the URL has it"
		}
		b.own(string(cause), strconv.Itoa(d.Tokens), fmt.Sprintf("%s, %s", count(d.Requests, "request"), words))
	}
	b.WriteString("\n")
}

// blocksOf says in which blocks a prediction is.
func blocksOf(p *run.Prediction) string {
	switch {
	case !p.Estimated:
		return fmt.Sprintf("in the server's blocks of %d", p.BlockSize)
	case p.Measured > 0:
		return fmt.Sprintf("in blocks of %d, which all counts of cached tokens are multiples of", p.BlockSize)
	}
	return "whatever the server's blocks"
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// own is a line of what no other tool's block has: a name, a value, and what is
// to be said of it.
func (b *servingBlock) own(name, value, note string) {
	fmt.Fprintf(b, "  %-18s %12s  %s\n", name, value, note)
}

// PredictionCSV writes, for each request that was compared, the prompt tokens
// that were predicted to be cached and those that were, and the cause where they
// differ. The result must have been computed with Options.EachPrediction. The
// only errors are those of w.
func PredictionCSV(w io.Writer, p run.Prediction) error {
	out := csv.NewWriter(w)
	out.Write([]string{"row", "target_index", "input_length", "input_tokens", "shared_tokens", "predicted_tokens", "cached_tokens", "cause"})
	for _, e := range p.Each {
		input := ""
		if e.Input.Set {
			input = strconv.Itoa(e.Input.Value)
		}
		out.Write([]string{
			strconv.Itoa(e.Row), strconv.Itoa(e.Target), strconv.Itoa(e.ISL), input,
			strconv.Itoa(e.Shared), strconv.Itoa(e.Predicted), strconv.Itoa(e.Measured), string(e.Cause),
		})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing predictions: %w", err)
	}
	return nil
}

// predictionJSON is what summary.json says of it, or null.
func predictionJSON(p run.Prediction) any {
	if p.Requests == 0 {
		return nil
	}
	causes := map[string]any{}
	for _, cause := range run.Causes {
		d := p.Causes[cause]
		causes[string(cause)] = map[string]int{"requests": d.Requests, "tokens": d.Tokens}
	}
	return map[string]any{
		"requests": p.Requests, "equal_requests": p.Equal,
		"server_block_size": p.BlockSize, "server_block_size_estimated": p.Estimated, "template_tokens": p.TemplateTokens,
		"shared_tokens": p.Shared, "predicted_tokens": p.Predicted, "measured_tokens": p.Measured,
		"causes": causes,
	}
}
