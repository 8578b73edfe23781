// Fidelity measures how true to its source a generated trace is: it draws traces from many
// sources, by several seeds and of several lengths, checks each with moontide synth --check,
// and prints the share of (source, length, seed, aspect) that passes.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"moontide/.ci/results"
)

// here is the folder of this program, seen from the top of the repository.
const here results.Folder = ".ci/fidelity"

// lengths are the lengths of the drawn traces, in lengths of their source.
var lengths = []int{1, 3}

// noveltyKey is the key of the aspect that is not among the others in the JSON of a check.
const noveltyKey = "novelty"

var keys = []string{"lengths", "context", "lru_curve", "gaps", "turn_gaps", "peak_minute", "rate", noveltyKey}

// aspect is one comparison of a drawn trace with its source, as synth --check reports it.
type aspect struct {
	Key     string
	Gap     *float64
	Limit   *float64
	Outcome string // pass, fail or n/a
	Reason  string
}

// drawing is a trace that was drawn, and how it was judged.
type drawing struct {
	length, seed int
	aspects      []aspect
	err          error
}

type options struct {
	moontide, traces, out string
	seeds, parallel       int
	page                  bool
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("fidelity: ")
	var o options
	flag.StringVar(&o.moontide, "moontide", "", "moontide program")
	flag.StringVar(&o.traces, "traces", "", "`FOLDER` of further sources: traces of any format")
	flag.StringVar(&o.out, "out", filepath.Join("runs", "fidelity"), "folder for sources and drawn traces")
	flag.IntVar(&o.seeds, "seeds", 10, "seeds of each source and length")
	flag.IntVar(&o.parallel, "parallel", 2, "traces drawn at a time")
	flag.BoolVar(&o.page, "page", false, "write README.md")
	only := flag.String("only", "", "draw only from sources whose name matches this `REGEXP`")
	flag.Parse()
	if err := o.run(*only); err != nil {
		log.Fatal(err)
	}
}

func (o *options) run(only string) error {
	wanted, err := regexp.Compile(only)
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
	sources := generated(o.moontide)
	if o.traces != "" {
		if sources, err = found(o.traces, sources); err != nil {
			return err
		}
	}
	p := results.Page{}
	p.Line(head, o.seeds, strings.ReplaceAll(strings.TrimSpace(string(version)), "\n", ", "))
	p.Table(append([]string{"source", "rows", "passed"}, keys...)...)
	var all tally
	for _, s := range sources {
		if !wanted.MatchString(s.name) {
			continue
		}
		if err := s.prepare(o.out); err != nil {
			return err
		}
		of := tally{}
		for _, d := range o.drawings(s) {
			of.add(s.name, d)
		}
		cells := []string{s.name, strconv.Itoa(s.rows), of.share()}
		for _, key := range keys {
			cells = append(cells, of.cell(key))
		}
		p.Row(cells...)
		log.Printf("%-28s %7d rows  %s  mean rate error %.1f %%", s.name, s.rows, of.share(), 100*of.rateError())
		all.merge(of)
	}
	total := fmt.Sprintf("%s of %d comparisons passed; the mean error of the request rate is %.2f %%.", all.share(), all.count, 100*all.rateError())
	log.Print(total)
	p.Line("\n%s\n\n%s", total, about)
	for _, s := range sources {
		p.Line("- %s: %s", s.name, s.about)
	}
	if !o.page {
		return nil
	}
	return here.WritePage(p.String())
}

const head = `# Fidelity of generated traces

` + "`.ci/fidelity/run`" + ` draws traces from many sources with %d seeds, at the source's length and at three times it, compares
each with its source by ` + "`moontide synth --from SOURCE --check --json -o FILE`" + `, and writes this page with ` + "`--page`" + `.
Measured with %s.

Cells count the drawn traces that pass, and show the worst gap as a multiple of its limit if some fail; [aspects and
limits](../../synth/README.md#learn-from-a-trace) are those of the check.
`

const about = `## Sources
`

// tally counts comparisons.
type tally struct {
	passed, count int
	byKey         map[string][2]int // passed and all
	worst         map[string]float64
	rates         []float64 // gaps of the request rate
}

func (t *tally) add(source string, d drawing) {
	if t.byKey == nil {
		t.byKey, t.worst = map[string][2]int{}, map[string]float64{}
	}
	if d.err != nil {
		log.Printf("%s: %d times, seed %d: %v", source, d.length, d.seed, d.err)
		t.count += len(keys)
		return
	}
	for _, a := range d.aspects {
		if a.Outcome == "n/a" {
			continue
		}
		n := t.byKey[a.Key]
		t.count++
		n[1]++
		if a.Outcome == "pass" {
			t.passed++
			n[0]++
		}
		t.byKey[a.Key] = n
		share := math.Inf(1)
		if a.Gap != nil {
			share = *a.Gap / *a.Limit
		}
		t.worst[a.Key] = max(t.worst[a.Key], share)
		if a.Key == "rate" && a.Gap != nil {
			t.rates = append(t.rates, *a.Gap)
		}
		if a.Outcome != "pass" {
			log.Printf("%s: %d times, seed %d: %s fails: %.2f of the limit %s", source, d.length, d.seed, a.Key, share, a.Reason)
		}
	}
}

func (t *tally) merge(o tally) {
	t.passed, t.count, t.rates = t.passed+o.passed, t.count+o.count, append(t.rates, o.rates...)
}

func (t *tally) share() string {
	return fmt.Sprintf("%.1f %%", 100*float64(t.passed)/float64(max(t.count, 1)))
}

func (t *tally) rateError() (mean float64) {
	for _, r := range t.rates {
		mean += r / float64(len(t.rates))
	}
	return mean
}

func (t *tally) cell(key string) string {
	n := t.byKey[key]
	switch {
	case n[1] == 0:
		return "-"
	case n[0] == n[1]:
		return strconv.Itoa(n[0])
	}
	return fmt.Sprintf("%d of %d, %.1f", n[0], n[1], t.worst[key])
}

// drawings draws from a source, several at a time.
func (o *options) drawings(s source) []drawing {
	all := make([]drawing, len(lengths)*o.seeds)
	var wait sync.WaitGroup
	free := make(chan struct{}, o.parallel)
	for i := range all {
		free <- struct{}{}
		wait.Go(func() {
			all[i] = o.draw(s, lengths[i/o.seeds], i%o.seeds)
			<-free
		})
	}
	wait.Wait()
	return all
}

// draw draws a trace from a source and has it judged.
func (o *options) draw(s source, length, seed int) drawing {
	d := drawing{length: length, seed: seed}
	name := filepath.Join(o.out, fmt.Sprintf("%s-%d-%d.jsonl.zst", s.name, length, seed))
	defer os.Remove(name)
	out, err := command(o.moontide, "synth", "--from", s.path, "-n", strconv.Itoa(length*s.rows), "--seed", strconv.Itoa(seed), "--check", "--json", "-o", name)
	var report struct {
		Aspects []aspect
		Novelty struct {
			Pass    bool
			Rows    float64
			MaxRows float64 `json:"max_rows"`
		}
	}
	if len(out) > 0 { // it says what failed
		err = json.Unmarshal(out, &report)
	}
	d.err = err
	novelty := aspect{Key: noveltyKey, Gap: &report.Novelty.Rows, Limit: &report.Novelty.MaxRows, Outcome: "fail"}
	if report.Novelty.Pass {
		novelty.Outcome = "pass"
	}
	d.aspects = append(report.Aspects, novelty)
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
