package atomicfile_test

import (
	"fmt"
	"os"
	"path/filepath"

	"moontide/trace/atomicfile"
)

func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "result.json")

	f, err := atomicfile.Create(path)
	if err != nil {
		panic(err)
	}
	defer f.Discard()
	fmt.Fprint(f, `{"done": true}`)
	if err := f.Close(); err != nil { // the file appears
		panic(err)
	}
	text, err := os.ReadFile(path)
	fmt.Println(string(text), err)
	// Output: {"done": true} <nil>
}
