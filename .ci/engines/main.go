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
	"moontide/replay/bench"
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
	flag.StringVar(&t.moontide, "moontide", "", "moontide program")
	flag.StringVar(&t.vllm, "vllm", "", "virtual environment of vLLM")
	flag.StringVar(&t.llamacpp, "llamacpp", "", "folder of llama.cpp")
	flag.StringVar(&t.models, "models", "", "folder for the models")
	flag.StringVar(&t.out, "out", filepath.Join("runs", "engines"), "folder for runs and logs")
	flag.StringVar(&t.weka, "weka", "", "folder of WEKA conversations (.json) to replay too")
	render := flag.Bool("render", false, "write README.md from results.json and measure nothing")
	list := flag.Bool("list", false, "list the checks")
	flag.Parse()
	switch {
	case *list:
		for _, c := range checks {
			fmt.Printf("%-26s %s\n", c.name, strings.Join(c.engines, ", "))
		}
	case *render:
		var r measurements
		if err := errors.Join(here.Read(&r), here.WritePage(r.page())); err != nil {
			log.Fatal(err)
		}
	default:
		if err := run(&t, flag.Args()); err != nil {
			log.Fatal(err)
		}
	}
}

// run runs the wanted checks: args are an engine and names of checks.
func run(t *tools, args []string) error {
	wanted := engines
	if len(args) > 0 {
		wanted = slices.DeleteFunc(slices.Clone(engines), func(e *engine) bool { return e.name != args[0] })
		args = args[1:]
	}
	var err error
	if t.weka != "" {
		if _, err := os.Stat(t.weka); err != nil {
			return err
		}
	}
	for _, dir := range []*string{&t.out, &t.models} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
		if err := os.MkdirAll(*dir, 0o755); err != nil {
			return err
		}
	}
	var r measurements
	if err := here.Read(&r); err != nil {
		return err
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

// replace replaces the rows of the checks that ran, in the order of the checks.
func (r *measurements) replace(found []result) {
	r.Rows = slices.DeleteFunc(r.Rows, func(old result) bool {
		return slices.ContainsFunc(found, func(x result) bool { return x.Engine == old.Engine && x.Check == old.Check })
	})
	r.Rows = append(r.Rows, found...)
	place := func(x result) int {
		return 1000*slices.IndexFunc(engines, func(e *engine) bool { return e.name == x.Engine }) +
			slices.IndexFunc(checks, func(c check) bool { return c.name == x.Check })
	}
	slices.SortStableFunc(r.Rows, func(a, b result) int { return cmp.Compare(place(a), place(b)) })
}

func (r *measurements) setVersions(t *tools, wanted []*engine) {
	if r.Versions == nil {
		r.Versions = map[string]string{}
	}
	r.Versions["Date"] = time.Now().Format("2006-01-02")
	r.Versions["Machine"] = fmt.Sprintf("%d cores (%s)", runtime.NumCPU(), bench.ThisMachine().CPU)
	r.Versions["moontide"] = results.FirstLine("git", "rev-parse", "--short", "HEAD") + ", Go " + strings.TrimPrefix(runtime.Version(), "go")
	for _, e := range wanted {
		for name, version := range e.versions(t) {
			r.Versions[name] = version
		}
	}
}
