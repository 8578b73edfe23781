package runfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// Opening a named pipe in a run's folder would block.
func TestOpenRefusesOtherThanFiles(t *testing.T) {
	for _, name := range []string{runfile.RunFile, runfile.RequestsFile, runfile.GapsFile} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := runfile.Open(dir); err == nil || !strings.Contains(err.Error(), name+" is not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
