// Command size measures the time and memory of moontide with large traces, and writes
// README.md. The script run builds and calls it.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
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
	"moontide/synth/spec"
	"moontide/trace"
	"moontide/trace/format"
)

// here is the folder of this program, seen from the top of the repository.
const here results.Folder = ".ci/size"

// description is that of the traces: conversations that begin with one of many system
// prompts, some of them popular.
const description = `
num_requests: %d
rate: 20
block_size: 4096
unique_isl: exponential:400:min=1
osl: exponential:200:min=1
shared: {count: 1000, tokens: 4096, zipf: 1}
sessions: {turns: geometric:2.5, think_time: exponential:600s, new_tokens: exponential:300:min=1, timestamps: %s}
`

// source is a large trace: the description, with some keys and an order of its own.
type source struct {
	name, about                string
	sessions, requests, delays bool
	late                       float64 // ms
}

var sources = []source{
	{name: "rows", about: "10 million rows of 100 bytes, 20 million block references"},
	{name: "late", about: "the same, up to a minute out of order", late: 60_000},
	{name: "sessions", about: "the same, with 4 million session ids", sessions: true},
	{name: "requests", about: "the same, with session and request ids, and after", sessions: true, requests: true},
	{name: "delays", about: "the same, with session ids; later turns have a delay instead of a timestamp", sessions: true, delays: true},
}

// write writes the trace.
func (s source) write(path string, rows int) error {
	timestamps := "all"
	if s.delays {
		timestamps = "first"
	}
	drawn, err := spec.Parse(fmt.Appendf(nil, description, rows, timestamps), spec.Options{})
	if err != nil {
		return err
	}
	w, err := format.Create(path)
	if err != nil {
		return err
	}
	defer w.Discard()
	random := rand.New(rand.NewPCG(1, 0))
	latest := map[string]string{} // request of each session
	n := 0
	for r, err := range drawn.Requests() {
		if err != nil {
			return err
		}
		r.ContextLen, r.UniquePromptLen = trace.Opt[int]{}, trace.Opt[int]{}
		if s.requests {
			r.ID = fmt.Sprint("request-", n)
			if before := latest[r.SessionID]; before != "" {
				r.After = []string{before}
			}
			latest[r.SessionID] = r.ID
		}
		if !s.sessions {
			r.SessionID = ""
		}
		r.Timestamp.Value += s.late * random.Float64()
		if err := w.Write(r); err != nil {
			return err
		}
		n++
	}
	return w.Close()
}

// task is a command on a source, and the memory that it may take.
type task struct {
	source  string
	command string
	limit   float64 // MB; 0 is none
}

var tasks = []task{
	{"rows", "convert -o " + os.DevNull, 0},
	{"rows", "check", 300},
	{"rows", "analyze", 1000},
	{"late", "convert --sort -o " + os.DevNull, 512},
	{"sessions", "check", 300},
	{"sessions", "analyze", 1000},
	{"requests", "check", 300},
	{"requests", "analyze", 1000},
	{"delays", "check", 300},
	{"delays", "analyze", 1000},
}

func (t task) name() string { return t.command + " " + t.source + ".jsonl" }

// figure is what a task took.
type figure struct {
	Task   string  `json:"task"`
	Date   string  `json:"date"`
	Wall   float64 `json:"wall_seconds"`
	CPU    float64 `json:"cpu_seconds"`
	Memory float64 `json:"peak_mb"`
	Error  string  `json:"error,omitempty"`
}

func main() {
	log.SetFlags(log.Ltime)
	moontide := flag.String("moontide", "", "moontide `PROGRAM`; none writes README.md from results.json and measures nothing")
	folder := flag.String("traces", filepath.Join("runs", "size"), "`FOLDER` for the traces")
	rows := flag.Int("rows", 10_000_000, "number of rows of each trace")
	only := flag.String("only", "", "measure only the tasks that match this `REGEXP`, and keep the other figures")
	write := flag.String("write", "", "write this trace, and nothing else")
	flag.Parse()
	err := error(nil)
	if i := slices.IndexFunc(sources, func(s source) bool { return s.name == *write }); i >= 0 {
		err = sources[i].write(filepath.Join(*folder, *write+".jsonl"), *rows)
	} else {
		err = measure(*moontide, *folder, *rows, *only)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// measure runs the wanted tasks, makes their traces in a folder unless they are there, and
// writes README.md.
func measure(moontide, folder string, rows int, only string) error {
	wanted, err := regexp.Compile(only)
	var figures []figure
	if err := errors.Join(err, here.Read(&figures), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	for _, t := range tasks {
		if moontide == "" || !wanted.MatchString(t.name()) {
			continue
		}
		path := filepath.Join(folder, t.source+".jsonl")
		if _, err := os.Stat(path); err != nil {
			// In a process of its own: the peak memory of a child is at least its parent's.
			text, err := exec.Command(os.Args[0], "-write", t.source, "-traces", folder, "-rows", fmt.Sprint(rows)).CombinedOutput()
			if err != nil {
				return fmt.Errorf("writing %s: %w: %s", path, err, text)
			}
		}
		f := run(moontide, t, path)
		log.Printf("%s: %.1f s, CPU %.1f s, %.0f MB %s", f.Task, f.Wall, f.CPU, f.Memory, f.Error)
		figures = append(slices.DeleteFunc(figures, func(old figure) bool { return old.Task == f.Task }), f)
		if err := here.Write(figures); err != nil {
			return err
		}
	}
	return here.WritePage(page(figures))
}

func run(moontide string, t task, path string) figure {
	c := exec.Command(moontide, append(strings.Fields(t.command), path)...)
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
	if err != nil && !(t.command == "check" && c.ProcessState.ExitCode() == 1) {
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
| --- | --- |`)
	for _, s := range sources {
		p.Row(s.name, s.about)
	}
	p.Line("\nWall time and CPU time depend on the machine and its load; peak memory hardly does. Measured on %s/%s.", runtime.GOOS, runtime.GOARCH)
	p.Table("command", "wall", "CPU", "peak memory", "limit")
	for _, t := range tasks {
		i := slices.IndexFunc(figures, func(f figure) bool { return f.Task == t.name() })
		if i < 0 {
			continue
		}
		f := figures[i]
		memory, limit := fmt.Sprintf("%.0f MB", f.Memory), "-"
		if t.limit > 0 {
			limit = fmt.Sprintf("%.0f MB", t.limit)
			if f.Memory > t.limit {
				memory = "**" + memory + "**"
			}
		}
		p.Row("`"+f.Task+"`", fmt.Sprintf("%.1f s", f.Wall), fmt.Sprintf("%.1f s", f.CPU), cmp.Or(f.Error, memory), limit)
	}
	p.Line("\nFigures above their limit are bold.")
	return p.String()
}
