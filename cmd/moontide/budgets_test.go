package main

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// maxLines holds the most lines of Go of each package, without tests: growth is a
// decision that somebody writes down here. The aim is 65,000 lines in all.
var maxLines = map[string]int{
	"analyze":                       1750,
	"analyze/cache":                 1600,
	"analyze/diff":                  1150,
	"analyze/fidelity":              500,
	"analyze/report":                5340,
	"analyze/report/doc":            1255,
	"analyze/report/figure":         2110,
	"analyze/measure":               4000,
	"analyze/slo":                   400,
	"cmd/moontide":                  6300,
	"replay":                        2220,
	"replay/experiment":             4700,
	"replay/experiment/search":      250,
	"replay/capture":                1390,
	"replay/cluster":                1360,
	"replay/evidence":               740,
	"replay/listen":                 250,
	"replay/live":                   300,
	"replay/monotonic":              200,
	"replay/openai":                 4500,
	"replay/openai/dial":            400,
	"replay/openai/http1":           1150,
	"replay/openai/http1/http1test": 150,
	"replay/openai/poll":            880,
	"replay/openai/sse":             300,
	"replay/parts":                  400,
	"replay/prompt":                 1000,
	"replay/runfile":                2000,
	"replay/settings":               1760,
	"replay/secret":                 250,
	"replay/sim/engine":             2400,
	"replay/sim/fit":                1300,
	"replay/sim/server":             2415,
	"replay/sim/virtual":            300,
	"replay/stamp":                  300,
	"replay/transcript":             450,
	"replay/weblog":                 100,
	"synth":                         150,
	"synth/prefix":                  200,
	"synth/sessions":                1500,
	"synth/spec":                    1750,
	"synth/tree":                    750,
	"trace":                         2110,
	"trace/atomicfile":              600,
	"trace/block":                   600,
	"trace/check":                   1270,
	"trace/format":                  3980,
	"trace/jsonscan":                820,
	"trace/log":                     1875,
	"trace/merge":                   200,
	"trace/routing":                 200,
	"trace/spill":                   300,
	"trace/stats":                   1190,
	"trace/tokenizer":               1150,
	"trace/tracetest":               200,
	"trace/yaml":                    215,
	"traces":                        50,
}

// Most lines in all: of code, of tests, of the programs in .ci, and of the pages that
// are not generated.
const (
	mostCode  = 74_000
	mostTests = 49_000
	mostCI    = 5_000
	mostPages = 5_000
	mostFiles = 25 // of a package, without tests
)

// No package, and no kind of file, is larger than its budget.
func TestBudgets(t *testing.T) {
	t.Parallel()
	packages, files := map[string]int{}, map[string]int{}
	var code, tests, ci, texts int
	for _, p := range pages(t) {
		if !strings.HasPrefix(p.name, "cmd/moontide/reference/") {
			texts += strings.Count(p.text, "\n")
		}
	}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir() && entry.Name() == "testdata":
			return cmp.Or(err, fs.SkipDir)
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines, at := strings.Count(string(text), "\n"), filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
		switch {
		case strings.HasPrefix(at, ".ci/"):
			ci += lines
		case strings.HasSuffix(at, "_test.go"):
			tests += lines
		default:
			code += lines
			packages[path.Dir(at)] += lines
			files[path.Dir(at)]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, lines := range packages {
		if lines > maxLines[name] {
			t.Errorf("%s has %d lines, more than %d", name, lines, maxLines[name])
		}
	}
	for name, n := range files {
		if n > mostFiles {
			t.Errorf("%s has %d files, more than %d", name, n, mostFiles)
		}
	}
	for name := range maxLines {
		if packages[name] == 0 {
			t.Errorf("there is no package %s", name)
		}
	}
	for what, of := range map[string][2]int{"code": {code, mostCode}, "tests": {tests, mostTests}, ".ci": {ci, mostCI}, "pages": {texts, mostPages}} {
		if of[0] > of[1] {
			t.Errorf("%s: %d lines, more than %d", what, of[0], of[1])
		}
	}
}
