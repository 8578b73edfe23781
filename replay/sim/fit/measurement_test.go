package fit

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// line returns a measurement of a closed loop that contradicts nothing.
func line(concurrency int, ttft, tpot float64) Measurement {
	e2el := ttft + 99*tpot
	rate := float64(concurrency) / e2el * 1000 * 0.96
	return Measurement{
		Name: fmt.Sprint("c", concurrency), Load: Load{ISL: 1000, OSL: 100, Concurrency: concurrency},
		Values: Values{
			RequestThroughput: rate, OutputThroughput: 100 * rate, MeanE2EL: e2el, P99E2EL: 1.1 * e2el,
			MeanTTFT: ttft, P99TTFT: 1.2 * ttft, MeanTPOT: tpot, P99TPOT: 1.05 * tpot,
		},
	}
}

func TestScreen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(all []Measurement)
		row    int // -1: none
		kind   string
	}{
		{"nothing", func([]Measurement) {}, -1, ""},
		{"a dip of TPOT by 5 %", func(all []Measurement) { all[1] = line(4, 150, 9.6) }, -1, ""},
		{"half the throughput", func(all []Measurement) { all[1].Values[OutputThroughput] /= 2; all[1].Values[RequestThroughput] /= 2 }, 1, "Little's law"},
		{"seconds", func(all []Measurement) {
			for _, m := range Metrics[2:] {
				all[0].Values[m] /= 1000
			}
		}, 0, "Little's law"},
		{"TPOT falls", func(all []Measurement) { all[1] = line(4, 150, 20) }, 1, "falls with concurrency"},
		{"TTFT falls", func(all []Measurement) { all[1] = line(4, 400, 12) }, 1, "falls with concurrency"},
		{"a cold server", func(all []Measurement) { all[0].Values[P99TTFT] = 200 }, 0, "cold or stalled"},
		{"two speeds", func(all []Measurement) { all[2].Values[P99TPOT] = 30 }, 2, "uneven TPOT"},
	} {
		all := []Measurement{line(1, 100, 10), line(4, 150, 12), line(16, 300, 15)}
		tt.change(all)
		for i, row := range Screen(all) {
			found := slices.ContainsFunc(row.Findings, func(f string) bool { return strings.HasPrefix(f, tt.kind+": ") })
			if (row.Findings != nil) != (i == tt.row) || found != (i == tt.row) {
				t.Errorf("%s: row %d: %+v", tt.name, i, row.Findings)
			}
		}
	}
}

// The two stalled rows of a published table are found, and nothing in the others.
func TestScreenPublished(t *testing.T) {
	for name, want := range map[string][]string{
		"deepseek-r1-tp16": nil, "deepseek-r1-1p1d": nil, "qwen3-32b-3p1d": {"3000:150 at 1", "3000:150 at 4"},
	} {
		var found []string
		for _, r := range Screen(published(t, name)) {
			if r.Findings != nil {
				found = append(found, r.Load.String())
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("%s: excluded %q, want %q", name, found, want)
		}
	}
}

// published returns the rows of a published table.
func published(t testing.TB, name string) []Measurement {
	t.Helper()
	return readTable(t, "../../../traces/measurements/"+name+".csv")
}

func readTable(t testing.TB, path string) []Measurement {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table, err := ReadTable(file)
	if err != nil {
		t.Fatal(err)
	}
	return table.Measurements
}
