//go:build unix

package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// checkTables compares the Markdown tables of loads that a block printed with those shown
// after it, which may have more rows.
func (b *codeBlock) checkTables(t *testing.T, output string, done []executed) {
	t.Helper()
	if !slices.ContainsFunc(done, func(e executed) bool { return e.verb() == "bench" && slices.Contains(e.Args, "markdown") }) {
		return
	}
	rows := 0
	for line := range strings.Lines(output) {
		if strings.Count(line, "|") == 10 && !strings.HasPrefix(line, "| ---") { // of the load and its metrics
			rows++
			if !strings.Contains(b.after, "\n"+line) {
				t.Errorf("the page's table has no line %s", line)
			}
		}
	}
	if rows < 3 {
		t.Errorf("%d rows of a table in\n%s", rows, output)
	}
}

// checkBesidePublished compares the columns named moontide of the table after a
// block with what the block printed: one column per report, rows named after its
// lines.
func (b *codeBlock) checkBesidePublished(t *testing.T, output string) {
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
	figures    = regexp.MustCompile(`[0-9][0-9,]*(?:\.([0-9]+))?`)
	firstTable = regexp.MustCompile(`(?m)(?:^\| .* \|\n)+`)
	tableRow   = regexp.MustCompile(`(?m)^\| (.*) \|$`)
)
