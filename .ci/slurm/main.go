// Command slurm runs moontide as several processes under the launchers that start them
// on clusters, and checks what they report. The script run starts Slurm and this.
package main

import (
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
)

// here is the folder of this program, seen from the top of the repository.
const here results.Folder = ".ci/slurm"

// row is a law that a check states, beside what was measured.
type row struct {
	Check    string `json:"check"`
	Launcher string `json:"launcher"`
	Law      string `json:"law"`
	Limit    string `json:"limit"`
	Measured string `json:"measured"`
	OK       bool   `json:"ok"`
}

// measurements is results.json.
type measurements struct {
	Date    string `json:"date"`
	Machine string `json:"machine"`
	Rows    []row  `json:"rows"`
}

func (r *measurements) add(check, launcher, law, limit string, ok bool, measured string, args ...any) {
	x := row{check, launcher, law, limit, fmt.Sprintf(measured, args...), ok}
	r.Rows = append(r.Rows, x)
	log.Printf("%s, %s: %s %s: %s, ok %v", check, launcher, law, limit, x.Measured, ok)
}

// check is a group of laws.
type check struct {
	name, about string
	run         func(r *measurements, w *workshop) error
}

var checks = []check{
	{"conversation", "4 ranks replay traces/conversation.jsonl at its speed against two simulated engines, and one process does", conversation},
	{"starts", "4 ranks start a trace of 4 requests that are due at once; the start of a rank is when its request was sent", starts},
	{"barrier", "64 processes on this machine load a trace, meet and start", barrier},
	{"kill", "4 ranks replay the trace at its speed, and one of them is killed by SIGKILL at a random instant of the first 8 s", kill},
}

// workshop is where the checks run.
type workshop struct{ dir, url string }

func main() {
	log.SetFlags(log.Ltime)
	work := flag.String("work", "", "`FOLDER` for runs")
	list := flag.Bool("list", false, "list the checks")
	render := flag.Bool("render", false, "write README.md from results.json")
	flag.Parse()
	switch {
	case *list:
		for _, c := range checks {
			fmt.Printf("%-14s%s\n", c.name, c.about)
		}
		return
	case *render:
		*work = ""
	}
	failed, err := runChecks(*work, flag.Args(), *render)
	if err != nil {
		log.Fatal(err)
	}
	if failed > 0 {
		log.Fatalf("%d laws failed", failed)
	}
}

func runChecks(dir string, names []string, render bool) (failed int, err error) {
	var all measurements
	if err := here.Read(&all); err != nil {
		return 0, err
	}
	for _, c := range checks {
		if render || !results.Wanted(c.name, names) {
			continue
		}
		now := measurements{}
		if err := c.do(dir, &now); err != nil {
			return 0, fmt.Errorf("%s: %w", c.name, err)
		}
		all.Date, all.Machine = time.Now().Format(time.DateOnly), fmt.Sprintf("%d CPU cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
		all.Rows = append(slices.DeleteFunc(all.Rows, func(x row) bool { return x.Check == c.name }), now.Rows...)
		for _, x := range now.Rows {
			if !x.OK {
				failed++
			}
		}
	}
	return failed, errors.Join(here.Write(all), here.WritePage(all.page()))
}

func (c *check) do(dir string, r *measurements) error {
	w := &workshop{dir: filepath.Join(dir, c.name)}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	return c.run(r, w)
}

// page returns README.md.
func (r *measurements) page() string {
	var p results.Page
	p.Line(`# Distributed runs

Distributed runs under Debian's Slurm (munge, slurmctld and four slurmd), under Open MPI, and with the environment of Kubernetes
pods, all on one machine over loopback. The script in this folder installs missing packages, starts the daemons, runs the checks,
stops the daemons and writes this page from [results.json](results.json). It is not part of `+"`.ci/run`"+`.

`+"```bash"+`
.ci/slurm/run                # everything: 10 minutes
.ci/slurm/run starts kill    # checks whose names start with these words
.ci/slurm/run --shell        # a shell with Slurm running
`+"```"+`

Date: %s. Machine: %s, which also runs the simulated endpoint.`, r.Date, r.Machine)
	for _, c := range checks {
		p.Line("\n## %s\n\n%s.", strings.ToUpper(c.name[:1])+c.name[1:], strings.ToUpper(c.about[:1])+c.about[1:])
		p.Table("launcher", "law", "limit", "measured", "ok")
		for _, x := range r.Rows {
			if x.Check == c.name {
				p.Row(x.Launcher, x.Law, x.Limit, x.Measured, results.Mark(x.OK))
			}
		}
	}
	return p.String()
}
