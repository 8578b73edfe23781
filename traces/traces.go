// Package traces holds descriptions of workloads that are ready to use; see
// package moontide/synth/spec for what stands in them.
package traces

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Description returns the text of a description by its name, such as "chat".
func Description(name string) (text []byte, ok bool) {
	text, err := files.ReadFile(name + ".yaml")
	return text, err == nil
}

// Descriptions returns the names of all descriptions in order.
func Descriptions() []string {
	names, _ := fs.Glob(files, "*.yaml")
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".yaml")
	}
	return names
}
