package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page of dependencies gives a reason for every direct dependency, and for no
// other module.
func TestDependenciesHaveReasons(t *testing.T) {
	t.Parallel()
	var required []string
	for line := range strings.Lines(readFile(t, filepath.Join(root, "go.mod"))) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "\t") && len(fields) == 2 { // others are marked indirect
			required = append(required, fields[0])
		}
	}
	page := readFile(t, filepath.Join(root, ".github", "DEPENDENCIES.md"))
	var explained []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+\.\S+) \| \S.* \|$`).FindAllStringSubmatch(page, -1) {
		explained = append(explained, row[1])
	}
	slices.Sort(required)
	slices.Sort(explained)
	if diff := cmp.Diff(required, explained); diff != "" || len(required) == 0 {
		t.Errorf("go.mod (-) and the page (+) differ:\n%s", diff)
	}
}

// The licenses are those of the modules in the binaries of a release, in the
// versions that they have.
func TestLicensesOfLinkedModules(t *testing.T) {
	t.Parallel()
	linked := map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, architecture := range []string{"amd64", "arm64"} {
			list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".")
			list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture)
			out, err := list.Output()
			if err != nil {
				t.Fatal(err)
			}
			for module := range strings.Lines(string(out)) {
				linked[strings.TrimSpace(module)] = true
			}
		}
	}
	delete(linked, "")
	text, isOurs := strings.CutPrefix(must(t, t.TempDir(), "--licenses"), licensesHead)
	table, texts, _ := strings.Cut(text, "\n\n")
	listed := map[string]bool{}
	for line := range strings.Lines(table) {
		module, license, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if listed[module] = true; license == "" || !strings.Contains(texts, "\n"+module+": ") {
			t.Errorf("no license text of %s", module)
		}
	}
	if !listed["Go standard library"] || !isOurs {
		t.Error("no license of Go, or no word on moontide's own")
	}
	delete(listed, "Go standard library")
	if diff := cmp.Diff(linked, listed); diff != "" {
		t.Errorf("linked (-) and listed (+) differ; run go run ./.ci/package -licenses:\n%s", diff)
	}
}
