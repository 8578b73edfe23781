package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Writing a page over an earlier one keeps its permissions. Links stay what they are, and
// so do devices.
func TestAnalyzeWritesWhereItIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", threeRows)
	page := filepath.Join(dir, "page.html")
	must(t, dir, "analyze", "t.jsonl", "--html", "page.html")
	if err := os.Chmod(page, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("page.html", filepath.Join(dir, "link.html")); err != nil {
		t.Skipf("cannot link: %v", err)
	}
	if r := try(t, dir, "", "analyze", "t.jsonl", "--html", "link.html"); r.status != exitMisused || !strings.Contains(r.err, "link.html: it is a symbolic link") {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
	must(t, dir, "analyze", "t.jsonl", "--html", "page.html")
	if got := readFile(t, page); !strings.HasPrefix(got, "<!DOCTYPE html>") {
		t.Errorf("the page is %.40q", got)
	}
	if info, err := os.Stat(page); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "link.html")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		r := try(t, dir, "", "analyze", "t.jsonl", "--output", "png=/dev/full")
		if r.status != exitFailed || !strings.Contains(r.err, "/dev/full: no space left") {
			t.Errorf("exit status %d: %s", r.status, r.err)
		}
		if info, _ := os.Stat("/dev/full"); info.Mode()&fs.ModeDevice == 0 {
			t.Error("the device is none any more")
		}
	}
	// A figure that cannot be completed leaves the existing file unchanged.
	if got := files(t, dir); !slices.Equal(got, []string{"link.html", "page.html", "t.jsonl"}) {
		t.Errorf("files are %v", got)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
