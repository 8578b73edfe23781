//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWritesIntoPipes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no pipes: %v", err)
	}
	got := make(chan string)
	go func() {
		text, _ := os.ReadFile(path)
		got <- string(text)
	}()
	writeFile(t, path, "through")
	if text := <-got; text != "through" {
		t.Errorf("%q came through", text)
	}
	if info, _ := os.Lstat(path); info.Mode()&fs.ModeNamedPipe == 0 {
		t.Error("the pipe was replaced")
	}
	wantNames(t, dir, "pipe")
}
