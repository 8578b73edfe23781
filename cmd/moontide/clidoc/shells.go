package clidoc

import (
	"embed"
	"io"
	"strings"
)

// Shells are the shells that [WriteScript] has a script for.
var Shells = OneOf("bash", "zsh", "fish")

//go:embed scripts
var scripts embed.FS

// WriteScript writes the completion script of a shell. The script runs the command
// with the verb complete and the words of the command line, and shows what it
// prints: see [Completions.Write].
func WriteScript(w io.Writer, shell, command, complete string) error {
	text, err := scripts.ReadFile("scripts/" + shell)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.NewReplacer("COMMAND", command, "COMPLETE", complete).Replace(string(text)))
	return err
}
