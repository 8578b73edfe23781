package atomicfile

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
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
	writeFile(t, path, ownText)
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "new, not whole yet")
	wantFile(t, path, ownText)
	f.Discard()
	wantFile(t, path, ownText)
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
		writeFile(t, path, ownText)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode %v, %v; want %v", info.Mode(), err, mode)
		}
	}
}

// A link is refused, whether or not its target exists, and nothing happens to either.
func TestRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/there", ownText)
	for name, to := range map[string]string{"link": "there", "dangling": "nothing", "folder": "."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skipf("cannot link: %v", err)
		}
		for call, f := range map[string]func(string) (any, error){
			"Create":  func(path string) (any, error) { return Create(path) },
			"Replace": func(path string) (any, error) { return Replace(path) },
			"New":     func(path string) (any, error) { return New(path, 0o600) },
			"Open":    func(path string) (any, error) { return Open(path, os.O_RDWR|os.O_CREATE, 0o600) },
		} {
			if _, err := f(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s opens %s", call, name)
			}
		}
	}
	wantFile(t, dir+"/there", ownText)
	wantNames(t, dir, "dangling", "folder", "link", "there")
	// A link in another element of the path is followed.
	writeFile(t, dir+"/folder/there", ownText+ownText)
	wantFile(t, dir+"/there", ownText+ownText)
}

const ownText = `{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}` + "\n"

func compressed(t *testing.T, text string, to func(io.Writer) io.WriteCloser) string {
	var b strings.Builder
	z := to(&b)
	io.WriteString(z, text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Files of moontide's are replaced, those of others stay as they are.
func TestKeepsForeignFiles(t *testing.T) {
	zip := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	zst := func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }
	trace := strings.Repeat(ownText, 1000)
	for _, own := range []string{
		"", trace, `{"input_length": 5`, compressed(t, trace, zip), compressed(t, trace, zst), compressed(t, `{"moontide_model":4,`, zip),
		compressed(t, trace, zip)[:300],
		"{\n  \"format\": \"moontide engine\",", "{\n  \"version\": \"1.0\",\n  \"command\": [\n    \"moontide\",",
		"{\n  \"backend\": \"openai-chat\",\n  \"completed\": 5,\n  \"date\": \"x\",\n  \"max_e2el_ms\": 1", "{\n  \"run_id\": \"X\",\n  \"of\": 2",
		"<!DOCTYPE html>\n<html lang=\"en\">\n<meta name=\"generator\" content=\"moontide\">",
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"moontide\"", "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 25) + "\x00\x00\x00\x11" + PNGMark,
	} {
		path := filepath.Join(t.TempDir(), "file")
		os.WriteFile(path, []byte(own), 0o600)
		writeFile(t, path, "new")
		wantFile(t, path, "new")
	}
	for _, foreign := range []string{
		"my notes on moontide", "\n", "{}", `{"timestamp": "yesterday"}`, `{"timestamp":0,"prompt":"x"}`, `{"timestamp": 1764350000.5, "level": "info"}`,
		"{\n  \"version\": \"0.1.0\",\n  \"command\": \"tsc\"\n}", "{\n  \"version\": \"1\",\n  \"command\": [\n    \"npm\"", "{\n  \"backend\": \"openai-chat\",\n  \"burstiness\": 1", "{\n  \"run_id\": \"abc\",\n  \"experiment\": 1",
		"<!DOCTYPE html>\n<html>moontide", "\x89PNG\r\n\x1a\nmine",
		compressed(t, "notes", zip), compressed(t, "notes", zst), "\x1f\x8b", "\x28\xb5\x2f\xfd", " " + ownText, "\xef\xbb\xbf" + ownText,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		os.WriteFile(path, []byte(foreign), 0o600)
		if f, err := Create(path); err == nil || err.Error() != path+": it exists and moontide did not write it: choose another path, or delete it" {
			t.Errorf("%v, error %v for %.40q", f, err, foreign)
		}
		wantFile(t, path, foreign)
		wantNames(t, dir, "file")
		f, err := Replace(path) // in a folder of moontide's
		if err != nil {
			t.Fatal(err)
		}
		f.Discard()
		wantFile(t, path, foreign)
	}
}

// What others put at the path, or in place of the temporary file, while a file is written
// stays.
func TestKeepsWhatComes(t *testing.T) {
	for _, had := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		if had {
			writeFile(t, path, ownText)
		}
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile(path, []byte("mine"), 0o600)
		if f.Close() == nil {
			t.Error("no error")
		}
		wantFile(t, path, "mine")
		wantNames(t, dir, "file")
	}
	dir := t.TempDir()
	f, err := Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	os.Rename(f.file.Name(), f.file.Name()+"x")
	os.WriteFile(f.file.Name(), []byte("mine"), 0o600)
	if f.Close() == nil {
		t.Error("no error")
	}
	wantFile(t, f.file.Name(), "mine")
}

// The temporary file of a killed process goes with the next one that writes the same
// file, others stay.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	active, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer active.Discard()
	for name, text := range map[string]string{PartSuffix + "1": ownText, PartSuffix + "2": "", PartSuffix + "3": "mine", PartSuffix + "x": ownText, ".part4": ownText} {
		os.WriteFile(path+name, []byte(text), 0o600)
	}
	os.Symlink(path+PartSuffix+"x", path+PartSuffix+"5")
	writeFile(t, path, ownText)
	for name, stays := range map[string]bool{"1": false, "2": false, "3": true, "5": true, "x": true, strconv.Itoa(os.Getpid()): true} {
		if _, err := os.Lstat(path + PartSuffix + name); (err == nil) != stays {
			t.Errorf("%s: %v, stays %v", name, err, stays)
		}
	}
	wantFile(t, path+".part4", ownText)
}

// A removed file is the one that was opened.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, other := range []bool{false, true} {
		f, err := New(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if other {
			os.Rename(path, path+"2")
			os.WriteFile(path, []byte("other"), 0o600)
		}
		if err := Remove(f); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); (err == nil) != other {
			t.Errorf("another one has its path: %v; %v", other, err)
		}
	}
}

// The folder of a killed process goes with the next one that makes one, others stay.
func TestTemporaryFolder(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	folder := func(name, file, text string) {
		os.MkdirAll(filepath.Join(temp, name), 0o700)
		os.WriteFile(filepath.Join(temp, name, file), []byte(text), 0o600)
	}
	folder("moontide-killed", markFile, mark)
	folder("moontide-mine", "notes", mark)
	folder("moontide-other", markFile, mark+"notes")
	folder("mine", markFile, mark)
	os.Symlink(filepath.Join(temp, "mine"), filepath.Join(temp, "moontide-link"))
	active, removeActive, err := TemporaryFolder()
	if err != nil {
		t.Fatal(err)
	}
	dir, remove, err := TemporaryFolder()
	if err != nil {
		t.Fatal(err)
	}
	remove()
	wantNames(t, temp, "mine", filepath.Base(active), "moontide-link", "moontide-mine", "moontide-other")
	removeActive()
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
	wantNames(t, temp, "mine", "moontide-link", "moontide-mine", "moontide-other")
}

// Without a place for it there is nothing to remove.
func TestNoTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	_, remove, err := TemporaryFolder()
	if remove(); err == nil {
		t.Error("no error")
	}
}

// A file that the user has made read-only stays.
func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write all files")
	}
	path := filepath.Join(t.TempDir(), "file")
	os.WriteFile(path, []byte(ownText), 0o444)
	if f, err := Create(path); err == nil {
		t.Errorf("%v replaces a read-only file", f)
	}
	wantFile(t, path, ownText)
}

func TestTryFolder(t *testing.T) {
	dir := t.TempDir()
	if err := TryFolder(dir + "/a/b/c"); err != nil {
		t.Error(err)
	}
	wantNames(t, dir)
	os.WriteFile(dir+"/file", nil, 0o600)
	if err := TryFolder(dir + "/file/b"); err == nil {
		t.Error("no error")
	}
	wantNames(t, dir, "file")
}

// Errors name the requested path.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir:               dir + ": it is a folder",
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
	if err := f.Close(); err == nil || !strings.HasPrefix(err.Error(), path+": ") || strings.Contains(err.Error(), PartSuffix) {
		t.Errorf("error %v", err)
	}
	wantNames(t, dir, "file")
	// Two may write one file.
	one, err := Create(path + "2")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+"2", ownText)
	io.WriteString(one, "one")
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	wantFile(t, path+"2", "one")
}
