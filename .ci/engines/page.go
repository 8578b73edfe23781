package main

import (
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
