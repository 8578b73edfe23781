// Fidelity measures how true to its source a learned trace is: it learns from many
// sources, draws traces by several seeds and of several lengths, checks each with
// moontide synth --check, and writes the results to README.md.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"moontide/.ci/results"
)

// here is the folder of this program, seen from the top of the repository.
const here results.Folder = ".ci/fidelity"

// lengths are the lengths of the drawn traces, in lengths of their source.
var lengths = []int{1, 3}

// measurements is results.json.
type measurements struct {
	Date    string    `json:"date"`
	Version string    `json:"version"`
	Sources []source  `json:"sources"`
	Draws   []drawing `json:"draws"`
}

// drawing is a trace that was drawn, and how it was judged.
type drawing struct {
	Source  string   `json:"source"`
	Length  int      `json:"length"` // in lengths of the source
	Seed    int      `json:"seed"`
	Seconds float64  `json:"seconds"`
	Aspects []aspect `json:"aspects,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// aspect is one comparison of a drawn trace with its source, as synth --check
// reports it.
type aspect struct {
	Key     string   `json:"key"`
	Name    string   `json:"name"`
	Kind    string   `json:"gap_is"` // relative, difference or ks
	Source  *float64 `json:"source"`
	Drawn   *float64 `json:"drawn"`
	Gap     *float64 `json:"gap"`
	Noise   *float64 `json:"noise_floor"`
	Bound   float64  `json:"bound"`
	Outcome string   `json:"outcome"` // pass, fail or n/a
	Reason  string   `json:"reason,omitempty"`
}

type options struct {
	moontide, traces, out string
	seeds, parallel       int
	small, render         bool
	only                  string
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("fidelity: ")
	var o options
	flag.StringVar(&o.moontide, "moontide", "", "moontide program")
	flag.StringVar(&o.traces, "traces", "", "`FOLDER` of further sources: traces of any format")
	flag.StringVar(&o.out, "out", filepath.Join("runs", "fidelity"), "folder for sources and drawn traces")
	flag.IntVar(&o.seeds, "seeds", 10, "seeds of each source and length")
	flag.IntVar(&o.parallel, "parallel", 2, "traces drawn at a time")
	flag.BoolVar(&o.small, "small", false, "two seeds, and no source of more than 10,000 rows")
	flag.StringVar(&o.only, "only", "", "draw only from sources that match this `REGEXP`, and keep the other results")
	flag.BoolVar(&o.render, "render", false, "write README.md from results.json and draw nothing")
	flag.Parse()
	if err := o.run(); err != nil {
		log.Fatal(err)
	}
}

func (o *options) run() error {
	var r measurements
	if err := here.Read(&r); err != nil {
		return err
	}
	if !o.render {
		if err := o.measure(&r); err != nil {
			return err
		}
	}
	return here.WritePage(page(&r))
}

// measure replaces the results of the wanted sources. It saves them after each source.
func (o *options) measure(r *measurements) error {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	version, err := command(o.moontide, "--version")
	if err != nil {
		return err
	}
	r.Date, r.Version = time.Now().Format("2006-01-02"), strings.TrimSpace(string(version))
	sources, err := o.sources(wanted)
	if err != nil {
		return err
	}
	var mutex sync.Mutex
	free := make(chan struct{}, o.parallel)
	var wait sync.WaitGroup
	for _, s := range sources {
		if err := s.prepare(o.out); err != nil {
			return err
		}
		if _, err := command(o.moontide, "fit", s.path, "-o", o.model(s)); err != nil {
			return err
		}
		r.replace(s)
		for _, length := range lengths {
			for seed := range o.seeds {
				free <- struct{}{}
				wait.Go(func() {
					d := o.draw(s, length, seed)
					mutex.Lock()
					r.Draws = append(r.Draws, d)
					mutex.Unlock()
					<-free
				})
			}
		}
		wait.Wait()
		log.Printf("%s: %d rows", s.Name, s.Rows)
		r.sort()
		text, err := json.Marshal(r) // in a line: there are many
		if err == nil {
			err = os.WriteFile(here.File("results.json"), append(text, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// model is the file of the model of a source, which is learned once for all drawings.
func (o *options) model(s source) string { return filepath.Join(o.out, s.Name+".model.json") }

// sources returns the sources to draw from.
func (o *options) sources(wanted *regexp.Regexp) ([]source, error) {
	all := generated(o.moontide)
	if o.traces != "" {
		more, err := found(o.traces)
		if err != nil {
			return nil, err
		}
		all = append(more, all...)
	}
	if o.small {
		o.seeds = min(o.seeds, 2)
	}
	return slices.DeleteFunc(all, func(s source) bool {
		return !wanted.MatchString(s.Name) || o.small && !s.small
	}), nil
}

// replace removes the results of a source and lists it.
func (r *measurements) replace(s source) {
	r.Draws = slices.DeleteFunc(r.Draws, func(d drawing) bool { return d.Source == s.Name })
	i := slices.IndexFunc(r.Sources, func(old source) bool { return old.Name == s.Name })
	if i < 0 {
		r.Sources = append(r.Sources, s)
		return
	}
	r.Sources[i] = s
}

func (r *measurements) sort() {
	order := map[string]int{}
	for i, s := range r.Sources {
		order[s.Name] = i
	}
	slices.SortFunc(r.Draws, func(a, b drawing) int {
		return slices.Compare([]int{order[a.Source], a.Length, a.Seed}, []int{order[b.Source], b.Length, b.Seed})
	})
}

// draw draws a trace from a source and has it judged.
func (o *options) draw(s source, length, seed int) drawing {
	d := drawing{Source: s.Name, Length: length, Seed: seed}
	start := time.Now()
	name := filepath.Join(o.out, fmt.Sprintf("%s-%d-%d.jsonl.zst", s.Name, length, seed))
	defer os.Remove(name)
	out, err := command(o.moontide, "synth", "--from", o.model(s), "--against", s.path, "-n", strconv.Itoa(length*s.Rows), "--seed", strconv.Itoa(seed),
		"--check", "--json", "-", "-o", name)
	d.Seconds = time.Since(start).Seconds()
	var report struct {
		Aspects []aspect
		Novelty struct{ Pass bool }
	}
	if len(out) > 0 {
		err = json.Unmarshal(out, &report)
	}
	switch {
	case err != nil:
		d.Error = err.Error()
	case !report.Novelty.Pass:
		d.Error = "it has rows or blocks of its source"
	}
	d.Aspects = report.Aspects
	return d
}

// command runs a program and returns its standard output. An error ends with the last
// line of standard error.
func command(program string, args ...string) ([]byte, error) {
	cmd := exec.Command(program, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		err = fmt.Errorf("%s %s: %w: %s", filepath.Base(program), args[0], err, lines[len(lines)-1])
	}
	return out, err
}
