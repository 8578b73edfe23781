package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"moontide/.ci/results"
)

// here is the folder of this program, seen from the top of the repository.
const here results.Folder = ".ci/size"

// sources are the large traces, with the flags that make them.
var sources = map[string][]string{
	"rows":     {},
	"late":     {"-disorder", "60000"},
	"sessions": {"-sessions"},
	"requests": {"-sessions", "-requests"},
	"delays":   {"-sessions", "-delays"},
}

// task is a command on a source, and the memory that it may take.
type task struct {
	source  string
	command []string
	limit   float64 // MB; 0 is none
}

var tasks = []task{
	{"rows", []string{"convert", "-o", os.DevNull}, 0},
	{"rows", []string{"check"}, 300},
	{"rows", []string{"analyze"}, 1000},
	{"late", []string{"convert", "--sort", "-o", os.DevNull}, 512},
	{"sessions", []string{"check"}, 300},
	{"sessions", []string{"analyze"}, 1000},
	{"requests", []string{"check"}, 300},
	{"requests", []string{"analyze"}, 1000},
	{"delays", []string{"check"}, 300},
	{"delays", []string{"analyze"}, 1000},
}

func (t task) name() string { return strings.Join(t.command, " ") + " " + t.source + ".jsonl" }

// figure is what a task took.
type figure struct {
	Task   string  `json:"task"`
	Date   string  `json:"date"`
	Wall   float64 `json:"wall_seconds"`
	CPU    float64 `json:"cpu_seconds"`
	Memory float64 `json:"peak_mb"`
	Error  string  `json:"error,omitempty"`
}

// measure runs the wanted tasks, makes their traces in a folder, and writes README.md.
func measure(moontide, folder, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var figures []figure
	if err := here.Read(&figures); err != nil {
		return err
	}
	for _, t := range tasks {
		if moontide == "" || !wanted.MatchString(t.name()) {
			continue
		}
		trace, err := made(folder, t.source)
		if err != nil {
			return err
		}
		f := run(moontide, t, trace)
		log.Printf("%s: %.1f s, CPU %.1f s, %.0f MB %s", f.Task, f.Wall, f.CPU, f.Memory, f.Error)
		figures = append(slices.DeleteFunc(figures, func(old figure) bool { return old.Task == f.Task }), f)
		if err := here.Write(figures); err != nil {
			return err
		}
	}
	return here.WritePage(page(figures))
}

// made returns the file of a source, which it makes unless there is one.
func made(folder, source string) (string, error) {
	path := filepath.Join(folder, source+".jsonl")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	part, err := os.Create(path + ".part")
	if err != nil {
		return "", err
	}
	c := exec.Command(self, sources[source]...)
	c.Stdout, c.Stderr = part, os.Stderr
	if err := errors.Join(c.Run(), part.Close()); err != nil {
		return "", fmt.Errorf("making %s: %w", path, err)
	}
	return path, os.Rename(part.Name(), path)
}

func run(moontide string, t task, trace string) figure {
	c := exec.Command(moontide, append(slices.Clone(t.command), trace)...)
	var said bytes.Buffer
	c.Stderr = &said
	start := time.Now()
	err := c.Run()
	f := figure{Task: t.name(), Date: start.Format(time.DateOnly), Wall: time.Since(start).Seconds()}
	if s := c.ProcessState; s != nil {
		f.CPU = (s.UserTime() + s.SystemTime()).Seconds()
		f.Memory = float64(s.SysUsage().(*syscall.Rusage).Maxrss) * 1024 / 1e6
	}
	// A check exits 1 on a trace that cannot be replayed faithfully.
	if err != nil && !(t.command[0] == "check" && c.ProcessState.ExitCode() == 1) {
		f.Error = cmp.Or(strings.TrimSpace(said.String()), err.Error())
	}
	return f
}

// page returns README.md.
func page(figures []figure) string {
	var p results.Page
	p.Line(`# Time and memory of large traces

All figures come from one command, which generates the traces, runs moontide on them, and writes this page and
[results.json](results.json):

` + "```bash" + `
.ci/size/run                    # the traces go to runs/size
.ci/size/run -only 'check|sort' # some tasks only; keeps the other figures
` + "```" + `

| trace | content |
| --- | --- |
| rows | 10 million rows of 100 bytes, 25 million block references |
| late | the same, up to a minute out of order |
| sessions | the same, with 4 million session ids |
| requests | the same, with session and request ids, and after |
| delays | 10 million rows with session ids; later turns have a delay instead of a timestamp |

Wall time and CPU time depend on the machine and its load; peak memory hardly does. Measured on ` + runtime.GOOS + "/" + runtime.GOARCH + `.`)
	p.Table("command", "wall", "CPU", "peak memory", "limit")
	for _, t := range tasks {
		for _, f := range figures {
			if f.Task != t.name() {
				continue
			}
			limit, memory := "-", fmt.Sprintf("%.0f MB", f.Memory)
			if t.limit > 0 {
				limit = fmt.Sprintf("%.0f MB", t.limit)
			}
			if f.Error != "" {
				memory = f.Error
			} else if t.limit > 0 && f.Memory > t.limit {
				memory = "**" + memory + "**"
			}
			p.Row("`"+f.Task+"`", fmt.Sprintf("%.1f s", f.Wall), fmt.Sprintf("%.1f s", f.CPU), memory, limit)
		}
	}
	p.Line("\nFigures above their limit are bold.")
	return p.String()
}
