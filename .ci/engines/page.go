package main

import (
	"fmt"

	"moontide/.ci/results"
)

// titles are the engines as they call themselves.
var titles = map[string]string{"vllm": "vLLM", "llamacpp": "llama.cpp"}

func (r *measurements) page() string {
	var p results.Page
	p.Line(`# moontide on real engines

This page compares what moontide reports about real servers with what is expected. The script in this folder installs the
servers, gives them a tiny model with random weights, runs all checks and writes this page; all numbers come from
[results.json](results.json).

` + "```bash" + `
.ci/engines/run                    # everything: 8 GB, half an hour, mostly server startup
.ci/engines/run llamacpp           # one engine
.ci/engines/run vllm chat words    # checks whose names start with these words
.ci/engines/run --weka DIR vllm    # also replay the WEKA conversations in DIR
` + "```" + `

| | |
| --- | --- |`)
	for _, name := range []string{"Date", "Machine", "moontide", "vLLM", "llama.cpp"} {
		if v := r.Versions[name]; v != "" {
			p.Row(name, v)
		}
	}
	p.Line(`
Expected token counts come from the trace of a check and from a naive model of the engine's prefix cache in
` + "`cached.go`" + `, not from moontide's own prediction, which the agent checks compare with the server. A check that fails is a known bug of moontide.`)
	for _, e := range engines {
		r.laws(&p, e)
	}
	if len(r.Agents) > 0 {
		r.agentTables(&p)
	}
	if len(r.Pairs) > 0 {
		r.sides(&p)
	}
	if len(r.Foretold) > 0 {
		r.foretoldTable(&p)
	}
	return p.String()
}

func (r *measurements) laws(p *results.Page, e *engine) {
	kept, total := 0, 0
	for _, x := range r.Rows {
		if x.Engine == e.name {
			total++
			if x.OK {
				kept++
			}
		}
	}
	if total == 0 {
		return
	}
	p.Line("\n## %s\n\n%d of %d laws hold.", titles[e.name], kept, total)
	p.Table("check", "law", "expected", "measured", "ok")
	last := ""
	for _, x := range r.Rows {
		if x.Engine != e.name {
			continue
		}
		name := x.Check
		if name == last {
			name = ""
		}
		last = x.Check
		p.Row(name, x.Law, x.Expected, x.Measured, results.Mark(x.OK))
	}
}

func (r *measurements) sides(p *results.Page) {
	p.Line(`
## Side by side with vllm bench serve

The client of the same package on the same server, with one trace: %d requests of %d input and %d output tokens, %g a second. The clients
take turns for %d pairs of runs. Each is compared with the server's own histograms of its run; the figures are means of a
run, medians of the runs and, in parentheses, their range, in milliseconds.`, sideN, sideISL, sideOSL, 1000/sideGap, len(r.Pairs))
	p.Table("", "moontide", "vllm bench serve")
	ms := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	both := func(name string, value func(seen) float64) {
		p.Row(name, results.Spread(r.Pairs, func(p pair) float64 { return value(p.Moontide) }, ms), results.Spread(r.Pairs, func(p pair) float64 { return value(p.Peer) }, ms))
	}
	both("TTFT, client", func(x seen) float64 { return x.TTFT })
	both("TTFT, server", func(x seen) float64 { return x.ServerTTFT })
	both("TTFT, client less server", func(x seen) float64 { return x.TTFT - x.ServerTTFT })
	both("TPOT, client", func(x seen) float64 { return x.TPOT })
	both("TPOT, server", func(x seen) float64 { return x.ServerTPOT })
	both("TPOT, client less server, %", func(x seen) float64 { return 100 * (x.TPOT/x.ServerTPOT - 1) })
	tokens := func(x seen) string { return fmt.Sprintf("%d and %d", x.Input, x.Output) }
	p.Row("input and output tokens of a run", tokens(r.Pairs[0].Moontide), tokens(r.Pairs[0].Peer))
}
