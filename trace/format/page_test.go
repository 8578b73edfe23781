package format

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moontide/trace/tracetest"
)

// traces/README.md documents every key of the native format, every alias, and every
// format.
func TestPageHasAllKeysAndFormats(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tracetest.Root(t), "traces", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, native, _ := strings.Cut(string(text), "\n## The native format\n")
	native, formats, found := strings.Cut(native, "\n## Formats\n")
	if !found {
		t.Fatal("the page has no sections on the native format and on formats")
	}
	for name, key := range canonicalKey {
		row := ""
		for line := range strings.Lines(native) {
			if cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |"); strings.HasPrefix(line, "| ") && strings.Contains(cell, "`"+key+"`") {
				row = line
			}
		}
		if !strings.Contains(row, "`"+name+"`") {
			t.Errorf("no %s in the row of %s: %q", name, key, row)
		}
	}
	for _, f := range Formats() {
		if !strings.Contains(formats, "\n| `"+string(f)+"` |") {
			t.Errorf("no row of format %s", f)
		}
	}
}
