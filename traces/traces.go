// Package traces embeds ready-made workload specs; synth/README.md documents their
// keys.
package traces

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Spec returns the text of a spec by its name, such as "chat".
func Spec(name string) (text []byte, ok bool) {
	text, err := files.ReadFile(name + ".yaml")
	return text, err == nil
}

// Specs returns the names of all specs in alphabetical order.
func Specs() []string {
	names, _ := fs.Glob(files, "*.yaml")
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".yaml")
	}
	return names
}
