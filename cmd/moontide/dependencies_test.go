package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The contributors' page gives a reason for every direct dependency, and for no
// other module.
func TestDependenciesHaveReasons(t *testing.T) {
	t.Parallel()
	var required []string
	for line := range strings.Lines(readFile(t, filepath.Join(root, "go.mod"))) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "\t") && len(fields) == 2 { // others are marked indirect
			required = append(required, fields[0])
		}
	}
	page := readFile(t, filepath.Join(root, ".github", "CONTRIBUTING.md"))
	_, section, _ := strings.Cut(page, "\n## Dependencies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var explained []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+\.\S+) \| \S.* \|$`).FindAllStringSubmatch(section, -1) {
		explained = append(explained, row[1])
	}
	slices.Sort(required)
	slices.Sort(explained)
	if diff := cmp.Diff(required, explained); diff != "" || len(required) == 0 {
		t.Errorf("go.mod (-) and the page (+) differ:\n%s", diff)
	}
}
