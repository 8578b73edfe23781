package main

import (
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// mayImport is the house: which packages of the module each may know. Arrows
// point down only.
var mayImport = map[string][]string{
	"analyze":               {"trace", "trace/block", "trace/stats"},
	"analyze/cache":         {"trace", "trace/block", "trace/routing"},
	"analyze/diff":          {"analyze/run", "replay", "replay/runfile", "trace", "trace/stats"},
	"analyze/report":        {"analyze", "analyze/cache", "analyze/diff", "analyze/report/figure", "analyze/run", "replay", "replay/bench", "replay/runfile", "trace", "trace/check", "trace/routing", "trace/stats"},
	"analyze/report/figure": {},
	"analyze/run":           {"replay", "replay/runfile", "trace", "trace/block", "trace/stats"},
	"cmd/moontide":          {"analyze", "analyze/cache", "analyze/diff", "analyze/report", "analyze/run", "replay", "replay/bench", "replay/evidence", "replay/openai", "replay/prompt", "replay/prompt/dataset", "replay/runfile", "replay/sim/engine", "replay/sim/server", "replay/sim/virtual", "synth/sessions", "synth/spec", "synth/tree", "trace", "trace/atomicfile", "trace/check", "trace/format", "trace/routing", "trace/tokenizer", "traces"},
	"replay":                {"replay/monotonic", "trace"},
	"replay/bench":          {"replay", "replay/monotonic", "replay/openai", "replay/runfile", "trace", "trace/atomicfile", "trace/stats"},
	"replay/evidence":       {"replay", "replay/runfile"},
	"replay/monotonic":      {},
	"replay/openai":         {"replay", "replay/openai/http1", "replay/openai/poll", "replay/openai/sse", "replay/prompt", "trace", "trace/jsonscan"},
	"replay/openai/http1":   {"replay/openai/poll"},
	"replay/openai/sse":     {},
	"replay/openai/poll":    {},
	"replay/prompt":         {"trace"},
	"replay/prompt/dataset": {},
	"replay/runfile":        {"replay", "trace", "trace/atomicfile", "trace/format", "trace/jsonscan"},
	"replay/sim/engine":     {"trace/routing"},
	"replay/sim/server":     {"replay/monotonic", "replay/sim/engine", "trace/jsonscan"},
	"replay/sim/virtual":    {"replay", "replay/sim/engine", "trace"},
	"synth/prefix":          {},
	"synth/sessions":        {"synth/prefix", "trace", "trace/stats"},
	"synth/spec":            {"trace", "trace/format", "trace/stats"},
	"synth/tree":            {"synth/prefix", "trace", "trace/stats"},
	"trace":                 {},
	"trace/atomicfile":      {},
	"trace/block":           {},
	"trace/check":           {"trace", "trace/block"},
	"trace/format":          {"trace", "trace/atomicfile", "trace/jsonscan"},
	"trace/jsonscan":        {},
	"trace/routing":         {},
	"trace/stats":           {},
	"trace/tokenizer":       {},
	"trace/tracetest":       {},
	"traces":                {},
}

// onlyIn are libraries that have one place.
var onlyIn = map[string][]string{
	"github.com/valyala/fasthttp":   {"replay/openai", "replay/openai/http1", "replay/evidence", "replay/sim/server"},
	"net/http":                      {},
	"github.com/urfave/cli/v2":      {"cmd/moontide"},
	"github.com/klauspost/compress": {"trace/format"},
	"github.com/goccy/go-yaml":      {"synth/spec"},
}

func TestWhoImportsWhom(t *testing.T) {
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		name := strings.TrimPrefix(words[0], "moontide/")
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("%s has no place in the house yet: add it to mayImport", name)
		}
		for _, imported := range words[1:] {
			if room, ours := strings.CutPrefix(imported, "moontide/"); ours && !slices.Contains(allowed, room) {
				t.Errorf("%s imports %s", name, room)
			}
			for library, rooms := range onlyIn {
				if (imported == library || strings.HasPrefix(imported, library+"/")) && imported != "net/http/httputil" && !slices.Contains(rooms, name) {
					t.Errorf("%s imports %s", name, imported)
				}
			}
		}
	}
}

func TestTopLevel(t *testing.T) {
	want := []string{"README.md", "analyze", "cmd", "go.mod", "go.sum", "replay", "synth", "trace", "traces"}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && name != "runs" {
			got = append(got, path.Base(name))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the top level is %v, want %v", got, want)
	}
}
