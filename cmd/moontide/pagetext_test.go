//go:build unix

package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// These differ from run to run: measured numbers, the number of progress
// reports, which requests found the prefix cache as predicted, and, on a busy
// machine, the verdict.
var (
	progressPattern = regexp.MustCompile(`(?m)^moontide: \S+ of \S+ \| sent .*\n`)
	causePattern    = regexp.MustCompile(`(?m)^  (difference|cold|pending|evicted|overtaken) .*\n( {20,}.*\n)*`)
	verdictPattern  = regexp.MustCompile(`VALID|SUSPECT|INVALID|(?m)^  (valid  |suspect|invalid)`)
	numberPattern   = regexp.MustCompile(`[0-9][0-9.:]*(µs|ms|s|m)?`)
	spacePattern    = regexp.MustCompile(`\s+`) // lines are wrapped by their width
	// A slow machine may be SUSPECT, with a remedy, and may have GC pauses.
	remedyPattern = regexp.MustCompile(`<verdict> from # ms, |: [^:]*use a larger client machine or fewer streams`)
	pausePattern  = regexp.MustCompile(`longest GC pause # ms \(# in total\)`)
)

func masked(output string) string {
	output = progressPattern.ReplaceAllString(output, "")
	output = causePattern.ReplaceAllString(output, "")
	output = verdictPattern.ReplaceAllString(output, "<verdict>")
	output = numberPattern.ReplaceAllString(output, "#")
	output = spacePattern.ReplaceAllString(output, " ")
	output = remedyPattern.ReplaceAllString(output, "")
	return pausePattern.ReplaceAllString(output, "no GC pauses")
}

// checkSweep compares the Markdown table that a sweep printed with the one shown
// after its block. Measured numbers depend on the machine: only columns and loads
// must match.
func (b *block) checkSweep(t *testing.T, output string, done []executed) {
	t.Helper()
	after := strings.ReplaceAll(b.after, `\* |`, " |") // marks a load that was not VALID here
	sweeps := func(e executed) bool { return e.verb() == "bench" && slices.Contains(e.Args, "--markdown") }
	if !slices.ContainsFunc(done, sweeps) || !strings.Contains(after, "\n| ") {
		return
	}
	lines := 0
	virtual := !slices.ContainsFunc(done, measures)
	for line := range strings.Lines(output) {
		load, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		switch _, err := strconv.ParseFloat(strings.TrimRight(load, `\* `), 64); {
		case !row || strings.Count(line, "|") != 10: // the verdict's evidence is another table
			continue
		case err == nil && !virtual:
			line = "| " + strings.TrimRight(load, `\* `) + " |"
		}
		lines++
		if !strings.Contains(after, "\n"+line) {
			t.Errorf("the page's table has no line %s", line)
		}
	}
	if lines < 4 {
		t.Errorf("%d lines of a table in\n%s", lines, output)
	}
}

var (
	deploymentRows = regexp.MustCompile(`(?m)^\| (cached prompt tokens|(TTFT|TPOT|E2EL) mean / p99 \(ms\)) \| (.*) \|$`)
	figures        = regexp.MustCompile(`[0-9][0-9,]*(?:\.([0-9]+))?`)
)

// checkDeployments compares a table of deployments after a block with the runs
// that the block simulated, a column each.
func (s *scratch) checkDeployments(t *testing.T, b block, done []executed) {
	t.Helper()
	rows := deploymentRows.FindAllStringSubmatch(b.after, -1)
	var reports []string
	for _, e := range done {
		if out := e.values("out"); e.verb() == "simulate" && len(out) == 1 && len(rows) > 0 {
			reports = append(reports, must(t, s.dir, "report", filepath.FromSlash(out[0])))
		}
	}
	for _, row := range rows {
		cells := strings.Split(row[3], "|")
		if len(cells) != len(reports) {
			t.Fatalf("%d simulated runs for %s", len(reports), row[0])
		}
		labels := []string{"Total cached tokens:", "Total input tokens:"}
		if metric := row[2]; metric != "" {
			labels = []string{"Mean " + metric + " (ms):", "P99 " + metric + " (ms):"}
		}
		for column, cell := range cells {
			said := figures.FindAllStringSubmatch(cell, -1)
			if len(said) != len(labels) {
				t.Fatalf("%s: %q", row[1], cell)
			}
			for i, label := range labels {
				got := strconv.FormatFloat(printed(t, reports[column], label), 'f', len(said[i][1]), 64)
				if want := strings.ReplaceAll(said[i][0], ",", ""); got != want {
					t.Errorf("run %d: %s is %s, and the page says %s", column+1, label, got, want)
				}
			}
		}
	}
}

// checkBesidePublished compares the columns named moontide of the table after a
// block with what the block printed: one column per report, rows named after its
// lines.
func (b *block) checkBesidePublished(t *testing.T, output string) {
	t.Helper()
	var rows [][]string
	for _, row := range tableRow.FindAllStringSubmatch(firstTable.FindString(b.after), -1) {
		rows = append(rows, strings.Split(row[1], " | "))
	}
	if len(rows) < 3 || !slices.Contains(rows[0], "moontide") {
		return
	}
	for _, row := range rows[2:] {
		printed := regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(row[0])+`: +([0-9.]+)$`).FindAllStringSubmatch(output, -1)
		for column, name := range rows[0] {
			if name != "moontide" {
				continue
			}
			if len(printed) == 0 || len(row) != len(rows[0]) {
				t.Errorf("line %d: the block printed no value for a column of %v", b.line, row)
				break
			}
			said := figures.FindStringSubmatch(row[column])
			got, err := strconv.ParseFloat(printed[0][1], 64)
			if err != nil || said == nil || strconv.FormatFloat(got, 'f', len(said[1]), 64) != strings.ReplaceAll(said[0], ",", "") {
				t.Errorf("%s is %v, and the page says %s", row[0], got, row[column])
			}
			printed = printed[1:]
		}
	}
}

var (
	firstTable = regexp.MustCompile(`(?m)(?:^\| .* \|\n)+`)
	tableRow   = regexp.MustCompile(`(?m)^\| (.*) \|$`)
)
