package atomicfile

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeFile writes a text and closes the file.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, text string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, text)
	}
}

func wantNames(t *testing.T, folder string, want ...string) {
	t.Helper()
	var names []string
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds %v, want %v", names, want)
	}
}

func TestReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	writeFile(t, path, "old")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "new, not whole yet")
	wantFile(t, path, "old")
	f.Discard()
	wantFile(t, path, "old")
	wantNames(t, dir, "file")
	writeFile(t, path, "new")
	wantFile(t, path, "new")
	wantNames(t, dir, "file")
}

func TestKeepsPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, mode := range []fs.FileMode{0o600, 0o666, 0o640} {
		os.WriteFile(path, nil, 0o600)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, "x")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode %v, %v; want %v", info.Mode(), err, mode)
		}
	}
}

// Links stay links, whether or not their target exists.
func TestFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"files", "links"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, dir+"/files/there", "old")
	for name, to := range map[string]string{"links/there": "../files/there", "links/twice": "there", "links/new": "../files/new", "links/absolute": dir + "/files/absolute"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skipf("cannot link: %v", err)
		}
	}
	for name, file := range map[string]string{"twice": "there", "there": "there", "new": "new", "absolute": "absolute"} {
		writeFile(t, dir+"/links/"+name, name)
		wantFile(t, dir+"/files/"+file, name)
	}
	wantNames(t, dir+"/files", "absolute", "new", "there")
	entries, _ := os.ReadDir(dir + "/links")
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more", e.Name())
		}
	}
	os.Symlink("nothing", dir+"/links/last")
	os.Symlink("last", dir+"/links/first")
	if f, err := Create(dir + "/links/first"); err == nil || !strings.Contains(err.Error(), "first: symbolic link points to a dangling symbolic link") {
		t.Errorf("%v, error %v", f, err)
	}
}

// Errors name the requested path.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir:               dir + " is a folder",
		dir + "/none/new": dir + "/none/new: no such file or directory",
	} {
		if f, err := Create(path); err == nil || err.Error() != want {
			t.Errorf("%v, error %v; want %s", f, err, want)
		}
	}
	path := filepath.Join(dir, "file")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil { // in the meantime
		t.Fatal(err)
	}
	if err := f.Close(); err == nil || !strings.HasPrefix(err.Error(), path+": ") || strings.Contains(err.Error(), ".part") {
		t.Errorf("error %v", err)
	}
	wantNames(t, dir, "file")
	// A file that is being written, by this process or by a killed one, is left
	// alone.
	one, err := Create(path + "2")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+"2", "two")
	io.WriteString(one, "one")
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	wantFile(t, path+"2", "one")
}
