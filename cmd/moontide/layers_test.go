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
	"trace":                   {},
	"trace/block":             {"trace"},
	"trace/check":             {"trace", "trace/block"},
	"trace/foreign":           {"trace"},
	"trace/prefix":            {"trace"},
	"trace/tracetest":         {}, // for tests of all, those of trace among them
	"synth":                   {"synth/law", "trace", "trace/prefix"},
	"synth/law":               {},
	"synth/sessions":          {"synth/law", "trace", "trace/prefix"},
	"synth/describe":          {"synth/law", "trace"},
	"traces":                  {},
	"replay":                  {"replay/monotonic", "trace"},
	"replay/monotonic":        {},
	"replay/simserver/engine": {},
	"replay/prompt":           {"trace"},
	"replay/prompt/dataset":   {},
	"replay/prompt/tokenizer": {},
	"replay/sampler":          {"replay"},
	"replay/servermetrics":    {"replay"},
	"replay/openai/poll":      {},
	"replay/openai":           {"replay", "replay/openai/poll", "replay/prompt", "trace"},
	"replay/simserver":        {"replay/monotonic", "replay/simserver/engine", "trace"},
	"replay/virtual":          {"replay", "replay/simserver/engine", "trace"},
	"replay/bench":            {"analyze/dist", "replay", "replay/monotonic", "replay/openai", "trace"},
	"analyze/dist":            {},
	"analyze":                 {"analyze/dist", "trace", "trace/block", "trace/prefix"},
	"analyze/cache":           {"trace", "trace/block"},
	"analyze/serving":         {"analyze/dist", "replay", "trace", "trace/block"},
	"analyze/serving/compare": {"analyze/dist", "analyze/serving", "replay", "trace"},
	"analyze/report": {"analyze", "analyze/cache", "analyze/dist", "analyze/report/figure", "analyze/serving", "analyze/serving/compare", "replay", "replay/bench",
		"trace", "trace/check"},
	"analyze/report/figure": {},
	"cmd/moontide": {"analyze", "analyze/cache", "analyze/report", "analyze/serving", "analyze/serving/compare",
		"replay", "replay/bench", "replay/openai", "replay/prompt", "replay/prompt/dataset", "replay/prompt/tokenizer", "replay/sampler", "replay/servermetrics",
		"replay/simserver", "replay/simserver/engine", "replay/virtual",
		"synth", "synth/describe", "synth/sessions", "trace", "trace/check", "trace/foreign", "traces"},
}

// onlyIn are libraries that have one place.
var onlyIn = map[string][]string{
	"github.com/valyala/fasthttp":   {"replay/openai", "replay/servermetrics", "replay/simserver"},
	"net/http":                      {},
	"github.com/urfave/cli/v2":      {"cmd/moontide"},
	"github.com/klauspost/compress": {"trace"},
	"github.com/goccy/go-yaml":      {"synth/describe"},
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
