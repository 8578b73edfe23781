package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// render writes README.md.
func (r *results) render() error {
	return os.WriteFile(filepath.Join(here, "README.md"), []byte(r.page()), 0o644)
}

// titles are the engines as they call themselves.
var titles = map[string]string{"vllm": "vLLM", "llamacpp": "llama.cpp"}

func (r *results) page() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`# moontide on real engines

What moontide reports of real servers, beside what must be so. The script in this folder installs the servers, gives them
a tiny model with random weights, runs every check and writes this page; all numbers come from [results.json](results.json).

` + "```bash" + `
.ci/engines/run                    # everything: 8 GB, half an hour, most of it the start of servers
.ci/engines/run llamacpp           # one engine
.ci/engines/run vllm chat words    # the checks whose names begin so
.ci/engines/run --weka DIR vllm    # also replay the WEKA conversations in DIR
` + "```" + `

| | |
| --- | --- |`)
	for _, name := range []string{"Date", "Machine", "moontide", "vLLM", "llama.cpp"} {
		if v := r.Versions[name]; v != "" {
			cells(&b, name, v)
		}
	}
	line(`
The expected counts of tokens come from the trace of a check and from a naive model of the engine's prefix cache in
` + "`cached.go`" + `, not from moontide's own prediction, which the checks of agents compare with the server. A check with a failed law is a known fault of moontide.`)
	for _, e := range engines {
		r.laws(&b, e)
	}
	if len(r.Agents) > 0 {
		r.agentTables(&b)
	}
	if len(r.Pairs) > 0 {
		r.sides(&b)
	}
	if len(r.Foretold) > 0 {
		r.foretoldTable(&b)
	}
	return b.String()
}

func cells(b *strings.Builder, all ...string) {
	for i, cell := range all {
		all[i] = strings.NewReplacer("|", `\|`, "\n", "; ", "<", "&lt;").Replace(cell)
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(all, " | "))
}

func (r *results) laws(b *strings.Builder, e *engine) {
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
	fmt.Fprintf(b, "\n## %s\n\n%d of %d laws hold.\n\n| check | law | expected | measured | ok |\n| --- | --- | --- | --- | --- |\n", titles[e.name], kept, total)
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
		mark := "yes"
		if !x.OK {
			mark = "**no**"
		}
		cells(b, name, x.Law, x.Expected, x.Measured, mark)
	}
}

func (r *results) sides(b *strings.Builder) {
	fmt.Fprintf(b, `
## Side by side with vllm bench serve

The client of the same package on the same server, with one trace: %d requests of %d input and %d output tokens, %g a second. The clients
take turns for %d pairs of runs. Each is compared with the server's own histograms of its run; the figures are means of a
run, medians of the runs and, in parentheses, their range, in milliseconds.

| | moontide | vllm bench serve |
| --- | --- | --- |
`, sideN, sideISL, sideOSL, 1000/sideGap, len(r.Pairs))
	both := func(name string, value func(seen) float64) {
		cells(b, name, spread(r.Pairs, func(p pair) float64 { return value(p.Moontide) }), spread(r.Pairs, func(p pair) float64 { return value(p.Peer) }))
	}
	both("TTFT, client", func(x seen) float64 { return x.TTFT })
	both("TTFT, server", func(x seen) float64 { return x.ServerTTFT })
	both("TTFT, client less server", func(x seen) float64 { return x.TTFT - x.ServerTTFT })
	both("TPOT, client", func(x seen) float64 { return x.TPOT })
	both("TPOT, server", func(x seen) float64 { return x.ServerTPOT })
	both("TPOT, client less server, %", func(x seen) float64 { return 100 * (x.TPOT/x.ServerTPOT - 1) })
	tokens := func(x seen) string { return fmt.Sprintf("%d and %d", x.Input, x.Output) }
	cells(b, "input and output tokens of a run", tokens(r.Pairs[0].Moontide), tokens(r.Pairs[0].Peer))
}
