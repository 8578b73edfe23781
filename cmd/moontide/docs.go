package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/cmd/moontide/clidoc"
)

//go:generate go test -run "^Test(Reference|Schema)" . -update-docs

// completeName is the hidden verb that the completion scripts call.
const completeName = "__complete"

// documents reports whether a verb needs all other verbs, to document them.
func documents(verb string) bool {
	return slices.Contains([]string{"completion", "man", "help", completeName}, verb)
}

func completionCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Usage: "print a script that completes command lines in bash, zsh or fish",
		Description: "The script completes verbs, flags, values and files. Write it to a file that the shell reads at startup, " +
			"as in the examples, or load it once: source <(moontide completion bash).",
		Action: func(c *cli.Context) error {
			shell, err := one(c, clidoc.Shells.String())
			if err != nil {
				return err
			}
			if shell, err = clidoc.Shells.Resolve(shell); err != nil {
				return misused("completion: shell %w", err)
			}
			return std.print(func(w io.Writer) error { return clidoc.WriteScript(w, shell, appName, completeName) })
		},
	}
}

// completeCommand prints the completions of its last argument.
func completeCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Hidden: true,
		Action: func(c *cli.Context) error {
			return std.print(func(w io.Writer) error {
				return manualOf(newApp(std, stop)).Complete(c.Args().Slice()).Write(w)
			})
		},
	}
}

func manCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Usage:       "write the man pages to a folder",
		Description: "Writes moontide.1, and moontide-VERB.1 for each verb. The folder is created if it does not exist.",
		Action: func(c *cli.Context) error {
			dir, err := one(c, "DIR")
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("writing man pages: %w", err)
			}
			app, build := newApp(std, stop), thisBuild()
			app.Version = build.Version
			app.Compiled, _ = time.Parse(time.RFC3339, build.CommitDate) // no date in builds without one
			pages := manualOf(app).ManPages()
			for name, write := range pages {
				err = errors.Join(err, writeFile(std, filepath.Join(dir, name), write))
			}
			if err == nil {
				std.say("%d man pages written to %s", len(pages), dir)
			}
			return err
		},
	}
}

func helpCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Usage: "show all verbs, or the flags of a verb",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 { // parseArgs replaced moontide help VERB with moontide VERB --help
				return misused("help: want one verb, got %q", c.Args().Slice())
			}
			return std.print(manualOf(newApp(std, stop)).WriteHelp)
		},
	}
}
