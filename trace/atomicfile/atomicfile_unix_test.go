//go:build unix

package atomicfile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe is written in place, and nothing waits for one without a reader.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no pipes: %v", err)
	}
	if f, err := Create(path); err == nil {
		t.Errorf("%v opens a pipe that nobody reads", f)
	}
	if f, err := Open(path, os.O_RDWR, 0); err == nil {
		t.Errorf("%v opens a pipe as a file", f)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	writeFile(t, path, "through")
	if text, err := io.ReadAll(reader); string(text) != "through" {
		t.Errorf("%q came through, error %v", text, err)
	}
	if info, _ := os.Lstat(path); info.Mode()&fs.ModeNamedPipe == 0 {
		t.Error("the pipe was replaced")
	}
	wantNames(t, dir, "pipe")
}

// The name of an open file stands for it.
func TestOpenFiles(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, fmt.Sprintf("/dev/fd/%d", writer.Fd()), "through")
	writer.Close()
	if text, err := io.ReadAll(reader); string(text) != "through" {
		t.Errorf("%q came through, error %v", text, err)
	}
	for _, path := range []string{"/dev/fd/9999", "/proc/self/fd/99999999999999999999"} {
		if f, err := Create(path); err == nil || !strings.HasSuffix(err.Error(), "bad file descriptor") {
			t.Errorf("%v, error %v", f, err)
		}
	}
	for _, path := range []string{"1", "fd/1", "/dev/fd/x", "/dev/fd/+1", "/tmp/dev/stdout"} {
		if f, err := openDescriptor(path); f != nil || err != nil {
			t.Errorf("%s names the open file %v, error %v", path, f, err)
		}
	}
}
