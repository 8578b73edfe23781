// Engines runs moontide against real servers on this machine, compares what it
// reports with what must be so, and writes README.md. The script run installs the
// servers and calls it.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"moontide/.ci/results"
	"moontide/replay/experiment"
)

// here is the folder of this program, seen from the top of the repository.
const here results.Folder = ".ci/engines"

// tools are the installed programs and the folders of the suite.
type tools struct {
	moontide, vllm, llamacpp string // a program and two virtual environments
	models                   string
	out                      string
	weka                     string // folder of WEKA conversations, "" for none
}

// measurements is the content of results.json.
type measurements struct {
	Versions map[string]string `json:"versions"`
	Rows     []result          `json:"rows"`
}

// result is one law of a check.
type result struct {
	Engine   string `json:"engine"`
	Check    string `json:"check"`
	Law      string `json:"law"`
	Expected string `json:"expected"`
	Measured string `json:"measured"`
	OK       bool   `json:"ok"`
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("engines: ")
	var t tools
	flag.StringVar(&t.moontide, "moontide", "", "moontide program; none writes README.md from results.json and measures nothing")
	flag.StringVar(&t.vllm, "vllm", "", "virtual environment of vLLM")
	flag.StringVar(&t.llamacpp, "llamacpp", "", "folder of llama.cpp")
	flag.StringVar(&t.models, "models", "", "folder for the models")
	flag.StringVar(&t.out, "out", filepath.Join("runs", "engines"), "folder for runs and logs")
	flag.StringVar(&t.weka, "weka", "", "folder of WEKA conversations (.json) to replay too")
	flag.Parse()
	if err := run(&t, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

// run runs the wanted checks: args are an engine and names of checks.
func run(t *tools, args []string) error {
	var r measurements
	if err := here.Read(&r); err != nil {
		return err
	}
	if t.moontide == "" {
		return here.WritePage(r.page())
	}
	wanted := engines
	if len(args) > 0 {
		wanted = slices.DeleteFunc(slices.Clone(engines), func(e *engine) bool { return e.name != args[0] })
		args = args[1:]
	}
	var err error
	for _, dir := range []*string{&t.out, &t.models} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
		if err := os.MkdirAll(*dir, 0o755); err != nil {
			return err
		}
	}
	r.setVersions(t, wanted)
	failed := 0
	for _, e := range wanted {
		for _, st := range stagesOf(e, args) {
			found, err := st.run(t, e)
			if err != nil {
				return err
			}
			r.replace(found)
			if err := errors.Join(here.Write(&r), here.WritePage(r.page())); err != nil {
				return err
			}
			for _, x := range found {
				if !x.OK {
					failed++
				}
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d laws do not hold", failed)
	}
	return nil
}

// replace replaces the rows of the checks that ran, in the order of the checks, and removes
// those of checks that are no more.
func (r *measurements) replace(found []result) {
	place := func(x result) int {
		return slices.IndexFunc(checks, func(c check) bool { return c.name == x.Check && slices.Contains(c.engines, x.Engine) })
	}
	r.Rows = slices.DeleteFunc(r.Rows, func(old result) bool {
		return place(old) < 0 || slices.ContainsFunc(found, func(x result) bool { return x.Engine == old.Engine && x.Check == old.Check })
	})
	r.Rows = append(r.Rows, found...)
	slices.SortStableFunc(r.Rows, func(a, b result) int { return cmp.Compare(place(a), place(b)) })
}

func (r *measurements) setVersions(t *tools, wanted []*engine) {
	if r.Versions == nil {
		r.Versions = map[string]string{}
	}
	r.Versions["Date"] = time.Now().Format("2006-01-02")
	r.Versions["Machine"] = fmt.Sprintf("%d cores (%s)", runtime.NumCPU(), experiment.ThisMachine().CPU)
	r.Versions["moontide"] = results.FirstLine("git", "rev-parse", "--short", "HEAD") + ", Go " + strings.TrimPrefix(runtime.Version(), "go")
	for _, e := range wanted {
		r.Versions[e.title] = e.version(t)
	}
}

// page renders README.md.
func (r *measurements) page() string {
	var p results.Page
	p.Line(head)
	for _, name := range []string{"Date", "Machine", "moontide", "vLLM", "llama.cpp"} {
		if v := r.Versions[name]; v != "" {
			p.Row(name, v)
		}
	}
	p.Line(about)
	for _, e := range engines {
		rows := slices.DeleteFunc(slices.Clone(r.Rows), func(x result) bool { return x.Engine != e.name })
		kept := 0
		for _, x := range rows {
			if x.OK {
				kept++
			}
		}
		p.Line("\n## %s\n\n%d of %d laws hold.", e.title, kept, len(rows))
		p.Table("check", "law", "expected", "measured", "ok")
		last := ""
		for _, x := range rows {
			name := x.Check
			if name == last {
				name = ""
			}
			last = x.Check
			p.Row(name, x.Law, x.Expected, x.Measured, results.Mark(x.OK))
		}
	}
	return p.String()
}

const head = `# moontide on real engines

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
| --- | --- |`

const about = `
Expected token counts come from the trace of a check and from a naive model of the engine's prefix cache in
` + "`cached.go`" + `, not from moontide's own prediction, which the agent checks compare with the server. A check that fails is a known bug of moontide.`
