package log

import (
	"os"
	"path/filepath"
	"testing"
)

func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	a, err := OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if b, err := OpenKey(path); err != nil || b != a || a == (Key{}) {
		t.Errorf("%v, the same key: %v", err, b == a)
	}
	os.Chmod(path, 0o644)
	if _, err := OpenKey(path); err == nil {
		t.Error("a key that others can read is used")
	}
	os.Chmod(path, 0o600)
	os.WriteFile(path, []byte("secret"), 0o600)
	if _, err := OpenKey(path); err == nil {
		t.Error("a text that is no key is used")
	}
}
