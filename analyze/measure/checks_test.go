package measure_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"moontide/analyze/measure"
	"moontide/trace/tracetest"
)

// The page about the verdict lists the checks and their default limits.
func TestTrustPageListsTheChecks(t *testing.T) {
	const path, begin, end = "../../replay/TRUST.md", "<!-- checks, written by go test ./analyze/measure -update -->\n", "<!-- end of checks -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no table of checks", path)
	}
	table := "| check | SUSPECT from | INVALID above | threshold | what to do |\n| --- | --- | --- | --- | --- |\n"
	for _, c := range measure.Checks() {
		if c.Limits == nil || c.Remedy == "" {
			continue
		}
		l := c.Limits(measure.DefaultThresholds)
		if math.IsInf(l.Suspect, 1) {
			continue // never crossed
		}
		cell := func(limit float64) string {
			switch {
			case math.IsInf(limit, 1):
				return ""
			case limit <= math.SmallestNonzeroFloat64:
				return "any"
			case c.Setting == "lag", limit > 1:
				return fmt.Sprintf("%g ms", limit)
			}
			return fmt.Sprintf("%.3g %%", 100*limit)
		}
		setting := ""
		if c.Setting != "" {
			setting = "`" + c.Setting + "`"
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", c.What, cell(l.Suspect), cell(l.Invalid), setting, c.Remedy)
	}
	tracetest.Golden(t, path, before+begin+table+end+after)
}
