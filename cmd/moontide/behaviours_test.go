//go:build unix

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"moontide/analyze/measure"
	"moontide/replay/experiment"
	"moontide/trace/tracetest"
)

// behaviour is what a server, or a machine, does to a run, and what the run says.
type behaviour struct {
	name    string
	verdict string                     // VALID, SUSPECT or INVALID with the checks crossed; "" if nothing runs
	script  func(a *style, q question) // edits the answers
	bad     int                        // number of requests that script applies to; 0 is all
	always  func(a *style, q question) // also edits the answers to probes

	rows     int  // default 40
	osl      int  // default 5
	together bool // answers once all requests have arrived
	args     []string
	url      string // instead of the scripted server's
	files    int    // limit of open files
	counts   string // instead of the counts, if they depend on the machine
	busy     string // another verdict that a busy machine may give
}

func (b *behaviour) trace() string {
	var text strings.Builder
	for i := range b.rows {
		fmt.Fprintf(&text, `{"timestamp":%d,"input_length":128,"output_length":%d,"hash_ids":[%d`, i, b.osl, 8*i)
		for k := 1; k < 8; k++ {
			fmt.Fprintf(&text, ",%d", 8*i+k)
		}
		text.WriteString("]}\n")
	}
	return text.String()
}

// command replays the trace against the server. Lateness of this machine, which
// other tests load, does not count.
func (b *behaviour) command(t *testing.T, dir string) result {
	url := b.url
	if url == "" {
		url = serveScript(t, b)
	}
	args := append([]string{"replay", write(t, dir, "trace.jsonl", b.trace()), "--url", url, "--model", "m", "--out", "run",
		"--block-size", "16", "--set", "server-block-size=16", "--verdict", "lag=1m", "--timeout", "20s"}, b.args...)
	if b.files == 0 {
		return try(t, dir, "", args...)
	}
	r := finish(t, limited(moontide(dir, args...), "-n "+strconv.Itoa(b.files)))
	return result{out: r.out + r.err, status: r.status}
}

// row runs a behaviour and returns its row of the table.
func (b *behaviour) row(t *testing.T) string {
	b.rows, b.osl = cmp.Or(b.rows, 40), cmp.Or(b.osl, 5)
	dir := t.TempDir()
	r := b.command(t, dir)
	folder := filepath.Join(dir, "run")
	if _, err := os.Stat(folder); err != nil {
		if r.status != exitFailed || b.verdict != "" {
			t.Errorf("exit status %d without a run, want %q:\n%s", r.status, b.verdict, r.err)
		}
		return fmt.Sprintf("| %s | no run | %d | | | |\n", b.name, r.status)
	}
	measured, err := experiment.Measure(experiment.MeasureConfig{}, folder)
	if err != nil {
		t.Fatal(err)
	}
	m := measured.Metrics
	level, crossed := m.Verdict.Level.String(), crossedChecks(m.Verdict)
	if b.busy != "" && level+" "+crossed == b.busy {
		_, crossed, _ = strings.Cut(b.verdict, " ")
	}
	if got := strings.TrimSpace(level + " " + crossed); got != b.verdict || !strings.Contains(unwrapped(r.out), "Verdict: "+level) {
		t.Errorf("%s, want %s:\n%s%s", got, b.verdict, r.out, r.err)
	}
	if want := exitStatus(m); r.status != want {
		t.Errorf("exit status %d, want %d:\n%s%s", r.status, want, r.out, r.err)
	}
	counts := fmt.Sprintf("%d | %s", m.Completed, failuresByClass(m))
	if b.counts != "" {
		counts = b.counts
	}
	return fmt.Sprintf("| %s | %s | %d | %s | %s |\n", b.name, level, r.status, counts, crossed)
}

// exitStatus is the exit status that a measured run has by its verdict.
func exitStatus(m *measure.Result) int {
	switch {
	case m.Completed == 0:
		return exitFailed
	case m.Verdict.Level == measure.Invalid:
		return exitInvalid
	}
	return exitDone
}

// crossedChecks names the checks that a run did not pass.
func crossedChecks(v measure.Verdict) string {
	var crossed []string
	for _, e := range v.Evidence {
		if e.Level != measure.Valid {
			crossed = append(crossed, e.Check)
		}
	}
	return strings.Join(slices.Compact(crossed), ", ")
}

func failuresByClass(m *measure.Result) string {
	var failures []string
	for _, class := range slices.Sorted(maps.Keys(m.Errors)) {
		failures = append(failures, fmt.Sprintf("%d %s", m.Errors[class], class))
	}
	return strings.Join(failures, ", ")
}

// Every behaviour of a server has the verdict and the exit status that it deserves.
// The table shows them all.
func TestBehaviours(t *testing.T) {
	all := behaviours()
	rows := make([]string, len(all))
	t.Run("run", func(t *testing.T) {
		for i := range all {
			t.Run(all[i].name, func(t *testing.T) {
				t.Parallel()
				rows[i] = all[i].row(t)
			})
		}
	})
	if slices.Contains(rows, "") { // not all were run
		return
	}
	tracetest.Golden(t, "testdata/behaviours.md", "| behaviour | verdict | exit status | completed | failed | crossed checks |\n| --- | --- | ---: | ---: | --- | --- |\n"+strings.Join(rows, ""))
}
