package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayImport lists the packages of the module that each package may import.
// Imports point down only, and every listed import is used.
var mayImport = map[string][]string{
	"analyze":               {"analyze/cache", "trace", "trace/block", "trace/stats"},
	"analyze/cache":         {"trace", "trace/block", "trace/routing", "trace/stats"},
	"analyze/diff":          {"analyze/measure", "analyze/slo", "replay", "replay/runfile", "replay/settings", "trace", "trace/stats"},
	"analyze/fidelity":      {"analyze", "analyze/cache", "trace", "trace/stats"},
	"analyze/report":        {"analyze", "analyze/cache", "analyze/diff", "analyze/fidelity", "analyze/measure", "analyze/slo", "analyze/report/doc", "analyze/report/figure", "replay", "replay/experiment", "replay/runfile", "replay/settings", "replay/sim/engine", "replay/sim/fit", "trace", "trace/block", "trace/check", "trace/jsonscan", "trace/routing", "trace/stats"},
	"analyze/report/doc":    {"analyze/report/figure", "trace", "trace/stats"},
	"analyze/report/figure": {"trace/atomicfile", "trace/stats"},
	"analyze/measure":       {"replay", "replay/parts", "replay/runfile", "replay/transcript", "trace", "trace/block", "trace/stats"},
	"analyze/slo":           {"analyze/measure", "trace", "trace/stats"},
	"cmd/moontide":          {"analyze", "analyze/cache", "analyze/diff", "analyze/fidelity", "analyze/measure", "analyze/slo", "analyze/report", "analyze/report/doc", "replay", "replay/capture", "replay/cluster", "replay/evidence", "replay/experiment", "replay/live", "replay/openai", "replay/runfile", "replay/secret", "replay/settings", "replay/sim/engine", "replay/sim/fit", "replay/sim/server", "replay/weblog", "synth/sessions", "synth/spec", "synth/tree", "trace", "trace/atomicfile", "trace/block", "trace/check", "trace/format", "trace/log", "trace/merge", "trace/routing", "trace/stats", "trace/tokenizer", "traces"},

	"replay":                        {"replay/monotonic", "replay/transcript", "trace"},
	"replay/experiment":             {"analyze/measure", "analyze/slo", "replay", "replay/cluster", "replay/evidence", "replay/experiment/search", "replay/listen", "replay/monotonic", "replay/openai", "replay/parts", "replay/prompt", "replay/runfile", "replay/secret", "replay/settings", "replay/sim/engine", "replay/sim/fit", "replay/sim/server", "replay/sim/virtual", "synth/spec", "trace", "trace/atomicfile", "trace/block", "trace/format", "trace/jsonscan", "trace/log", "trace/stats", "trace/tokenizer", "trace/yaml", "traces"},
	"replay/experiment/search":      {},
	"replay/cluster":                {"replay", "replay/listen", "replay/runfile", "replay/weblog", "trace", "trace/atomicfile"},
	"replay/capture":                {"replay", "replay/listen", "replay/live", "replay/openai", "replay/openai/http1", "replay/openai/sse", "replay/stamp", "replay/weblog", "trace", "trace/atomicfile", "trace/format", "trace/log"},
	"replay/evidence":               {"replay", "replay/runfile", "replay/secret", "trace"},
	"replay/listen":                 {},
	"replay/live":                   {"replay", "replay/listen", "replay/weblog", "trace/stats"},
	"replay/monotonic":              {},
	"replay/openai":                 {"replay", "replay/openai/dial", "replay/openai/http1", "replay/openai/poll", "replay/openai/sse", "replay/prompt", "replay/secret", "replay/transcript", "trace", "trace/block", "trace/jsonscan", "trace/log", "trace/stats"},
	"replay/openai/dial":            {"replay/secret"},
	"replay/openai/http1":           {"replay/openai/poll"},
	"replay/openai/http1/http1test": {},
	"replay/openai/sse":             {},
	"replay/openai/poll":            {"replay/stamp", "trace/stats"},
	"replay/parts":                  {"replay", "replay/runfile", "trace"},
	"replay/prompt":                 {"replay/transcript", "trace", "trace/block"},
	"replay/runfile":                {"replay", "replay/openai", "replay/secret", "replay/settings", "trace", "trace/atomicfile", "trace/format", "trace/jsonscan"},
	"replay/settings":               {"replay", "replay/openai", "replay/prompt", "replay/secret", "replay/sim/engine", "trace", "trace/format", "trace/routing", "trace/yaml"},
	"replay/secret":                 {"trace/jsonscan"},
	"replay/sim/engine":             {"replay/transcript", "trace/routing"},
	"replay/sim/fit":                {"replay/sim/engine", "trace", "trace/jsonscan", "trace/stats"},
	"replay/sim/server":             {"replay/listen", "replay/monotonic", "replay/sim/engine", "replay/weblog", "trace/jsonscan", "trace/stats"},
	"replay/sim/virtual":            {"replay", "replay/sim/engine", "replay/transcript", "trace", "trace/block"},
	"replay/stamp":                  {},
	"replay/transcript":             {"trace", "trace/block"},
	"replay/weblog":                 {},
	"synth/prefix":                  {},
	"synth":                         {},
	"synth/sessions":                {"synth", "synth/prefix", "trace", "trace/block", "trace/jsonscan", "trace/log", "trace/stats"},
	"synth/spec":                    {"synth", "trace", "trace/block", "trace/jsonscan", "trace/stats", "trace/yaml"},
	"synth/tree":                    {"synth", "synth/prefix", "trace", "trace/block", "trace/stats"},
	"trace":                         {"trace/block", "trace/spill"},
	"trace/atomicfile":              {},
	"trace/block":                   {},
	"trace/check":                   {"trace", "trace/block", "trace/jsonscan", "trace/log", "trace/spill"},
	"trace/format":                  {"trace", "trace/atomicfile", "trace/block", "trace/jsonscan", "trace/log"},
	"trace/jsonscan":                {},
	"trace/log":                     {"trace", "trace/atomicfile", "trace/block", "trace/jsonscan"},
	"trace/merge":                   {"trace", "trace/block"},
	"trace/routing":                 {},
	"trace/spill":                   {"trace/atomicfile"},
	"trace/stats":                   {"trace/block"},
	"trace/tokenizer":               {"trace/jsonscan"},
	"trace/tracetest":               {"trace"},
	"trace/yaml":                    {},
	"traces":                        {},
}

// onlyIn lists libraries that may be used in one place only.
var onlyIn = map[string][]string{
	"github.com/valyala/fasthttp":   {"replay/openai", "replay/openai/http1", "replay/evidence", "replay/live", "replay/sim/server"},
	"net/http":                      {"replay/capture", "replay/cluster"},
	"log":                           {"replay/weblog"},
	"github.com/urfave/cli/v2":      {"cmd/moontide"},
	"github.com/klauspost/compress": {"replay/openai/http1", "synth/sessions", "trace/atomicfile", "trace/format"},
	"github.com/goccy/go-yaml":      {"replay/settings", "trace/yaml"},
}

func TestWhoImportsWhom(t *testing.T) {
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		name := strings.TrimPrefix(words[0], "moontide/")
		found[name] = true
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("%s is not in mayImport yet: add it", name)
		}
		for _, room := range allowed {
			if !slices.Contains(words[1:], "moontide/"+room) {
				t.Errorf("%s may import %s, and does not: take it off mayImport", name, room)
			}
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
	for name := range mayImport {
		if !found[name] {
			t.Errorf("mayImport lists %s, which is no package", name)
		}
	}
}

// inspectSource calls f with the nodes of all code but tests, and with the package of each.
func inspectSource(t *testing.T, f func(pkg string, at token.Position, n ast.Node)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				f(filepath.ToSlash(pkg), files.Position(n.Pos()), n)
			}
			return true
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Libraries do not mention flags of the command: Go programs that use them have
// none.
func TestLibrariesNameNoFlags(t *testing.T) {
	flagName := regexp.MustCompile(`(^|[^-\w])--[a-z]`)
	inspectSource(t, func(pkg string, at token.Position, n ast.Node) {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && !strings.HasPrefix(pkg, "cmd/") && flagName.MatchString(strings.Trim(lit.Value, "`\"")) {
			t.Errorf("%s names a flag: %s", at, lit.Value)
		}
	})
}

// Only one package makes, replaces and removes files: see its comment for what it never
// does. Folders that are there may be used by all.
func TestOnePackageMakesFiles(t *testing.T) {
	changes := regexp.MustCompile(`^os\.(Create|CreateTemp|MkdirTemp|OpenFile|WriteFile|Rename|Remove|RemoveAll|Truncate|Link|Symlink|Chmod|CopyFS|OpenRoot)$|^(ioutil|unix|syscall)\.(Open|Creat|Rename|Unlink|WriteFile|TempFile|TempDir)`)
	exempt := []string{"trace/atomicfile", "trace/tracetest"} // the latter writes what tests expect
	inspectSource(t, func(pkg string, at token.Position, n ast.Node) {
		if f, ok := n.(*ast.SelectorExpr); ok && !slices.Contains(exempt, pkg) {
			if of, ok := f.X.(*ast.Ident); ok && changes.MatchString(of.Name+"."+f.Sel.Name) {
				t.Errorf("%s: %s.%s: only trace/atomicfile changes files", at, of.Name, f.Sel.Name)
			}
		}
	})
}

// The HTTP libraries have a logger that knows no payload. Their own would write what peers
// sent to standard error.
func TestHTTPLibrariesHaveLoggers(t *testing.T) {
	field := map[string]string{"http.Server": "ErrorLog", "httputil.ReverseProxy": "ErrorLog", "fasthttp.Server": "Logger"}
	found := 0
	inspectSource(t, func(_ string, at token.Position, n ast.Node) {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || field[types.ExprString(lit.Type)] == "" {
			return
		}
		found++
		if !slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
			pair, ok := e.(*ast.KeyValueExpr)
			return ok && types.ExprString(pair.Key) == field[types.ExprString(lit.Type)] && types.ExprString(pair.Value) == "weblog.Logger"
		}) {
			t.Errorf("%s: %s has no %s", at, types.ExprString(lit.Type), field[types.ExprString(lit.Type)])
		}
	})
	if found < 5 {
		t.Errorf("%d servers and proxies", found)
	}
}

// A Go program that executes runs links neither the plots nor the command line.
func TestBenchLinksNoPlots(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./replay/experiment")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		for _, unwanted := range []string{"gonum.org/v1/plot", "github.com/urfave/cli", "moontide/analyze/report"} {
			if strings.HasPrefix(name, unwanted) {
				t.Errorf("replay/experiment depends on %s", name)
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
