package main

import (
	_ "embed"
	"io"

	"github.com/urfave/cli/v2"
)

// moduleLicenses has a line for each module in the binary, and the license texts.
// It is written by go run ./.ci/licenses.
//
//go:embed licenses.txt
var moduleLicenses string

const licensesHead = `The owner of moontide has not chosen a license for it yet.

The binary contains these modules under their own licenses, whose texts follow:

`

func licensesCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Usage: "print the licenses of the modules in this binary",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return misused("licenses: takes no argument: %q", c.Args().Slice())
			}
			return std.print(func(w io.Writer) error {
				_, err := io.WriteString(w, licensesHead+moduleLicenses)
				return err
			})
		},
	}
}
