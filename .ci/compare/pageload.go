package main

import (
	"fmt"
	"regexp"

	"moontide/analyze/report/doc"
)

// perUnit formats the CPU time of runs per token or request, without that of the
// start of the client. units returns how many units of the result a second makes
// in a run, such as 1e6 / tokens for microseconds per token.
func (p *writer) perUnit(runs []run, units func(run) float64) string {
	starts := p.of("start", runs[0].Tool)
	start := median(starts, cpu)
	noise := 0.0 // range of the starts
	for _, a := range starts {
		for _, b := range starts {
			noise = max(noise, a.Cost.CPU-b.Cost.CPU)
		}
	}
	if median(runs, cpu)-start < noise {
		return "below the noise of its start"
	}
	return spread(runs, func(r run) float64 { return (r.Cost.CPU - start) * units(r) })
}

func (p *writer) load(l load) {
	if len(p.toolsOf(l.Name)) == 0 {
		return
	}
	p.Line(`
## Load: %s

%s requests at %s per second, each answered with %d tokens: the first after %d ms, then one every %d ms. That makes
%s streams at a time and %s tokens/s, and takes %s s if nothing is late. The endpoint (`+"`moontide serve`"+`) reports the
latencies that it wrote; an error is the client's figure minus the endpoint's, of the same run.`, l.Name, doc.Int(l.Requests), number(l.Rate), l.OSL, l.TTFT, l.TPOT, doc.Int(l.Concurrency), doc.Int(int(l.Rate)*l.OSL), significant(l.lasts().Seconds()))
	p.Table("client", "answers", "duration, s", "TTFT error: mean, p50, p99, ms", "ITL error: mean, p50, p99, ms", "CPU per token, µs", "peak memory, MB")
	for _, tool := range p.toolsOf(l.Name) {
		runs := p.of(l.Name, tool)
		var done []run
		for _, r := range runs {
			if r.Client != nil {
				done = append(done, r)
			}
		}
		if len(done) == 0 {
			p.Row(tool, "no result: "+runs[0].Error, "", "", "", "", spread(runs, peak))
			continue
		}
		answers := fmt.Sprintf("%s of %s", doc.Int(int(median(done, func(r run) float64 { return float64(r.Client.Completed) }))), doc.Int(l.Requests))
		if len(done) < len(runs) {
			answers += fmt.Sprintf("; %d of %d runs without a result", len(runs)-len(done), len(runs))
		}
		p.Row(tool, answers, spread(done, func(r run) float64 { return r.Client.Duration }),
			errorsOf(done, func(r run) [3]float64 { return r.Client.TTFT }, func(r run) [3]float64 {
				return [3]float64{r.Server.TTFT.MeanMS, r.Server.TTFT.MedianMS, r.Server.TTFT.P99MS}
			}),
			errorsOf(done, func(r run) [3]float64 { return r.Client.ITL }, func(r run) [3]float64 {
				return [3]float64{r.Server.ITL.MeanMS, r.Server.ITL.MedianMS, r.Server.ITL.P99MS}
			}),
			p.perUnit(done, func(r run) float64 { return 1e6 / float64(r.Server.OutputTokens) }), spread(done, peak))
	}
	p.says(l)
}

// errorsOf formats the medians of mean, median and p99 as client minus server.
func errorsOf(runs []run, client, server func(run) [3]float64) string {
	text := ""
	for i, name := range []string{"", ", ", ", "} {
		text += name + fmt.Sprintf("%+.2f", median(runs, func(r run) float64 { return client(r)[i] - server(r)[i] }))
	}
	return text
}

// logDetails match what says nothing to a reader of this page.
var logDetails = regexp.MustCompile(`(?m)^[0-9:.]+ |_[0-9a-f]{8}| \(\w+\.py:[0-9]+\)`)

// says lists the endpoint's own figures and what clients said about their runs.
func (p *writer) says(l load) {
	p.Table("client", "endpoint's TTFT p99, ms", "endpoint's ITL p99, ms", "exit status", "says about its accuracy")
	for _, tool := range p.toolsOf(l.Name) {
		for i, r := range p.of(l.Name, tool) {
			text := "nothing"
			if r.Client != nil && r.Client.Says != "" {
				text = logDetails.ReplaceAllString(r.Client.Says, "")
			}
			p.Row(fmt.Sprintf("%s, run %d", tool, i+1), significant(r.Server.TTFT.P99MS), significant(r.Server.ITL.P99MS), fmt.Sprint(r.Cost.Exit), text)
		}
	}
}

func (p *writer) short() {
	const task = "one-token answers"
	var l load
	for _, other := range p.Loads {
		if other.Name == task {
			l = other
		}
	}
	p.Line(`
## Short answers

%s requests with answers of one token, %d at a time, as fast as the endpoint answers. The start of a client is a run with one
request; it is not in the CPU per request, nor in the CPU per token above.`, doc.Int(l.Requests), l.Concurrency)
	p.Table("client", "answers", "requests/s", "CPU per request, ms", "CPU to start, s", "peak memory, MB")
	for _, tool := range p.toolsOf(task) {
		runs := p.of(task, tool)
		if runs[0].Client == nil {
			p.Row(tool, "no result: "+runs[0].Error)
			continue
		}
		p.Row(tool, doc.Int(runs[0].Client.Completed),
			spread(runs, func(r run) float64 { return float64(r.Client.Completed) / r.Client.Duration }),
			p.perUnit(runs, func(run) float64 { return 1e3 / float64(l.Requests) }),
			spread(p.of("start", tool), cpu), spread(runs, peak))
	}
}
