package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"
)

// Set by -ldflags "-X main.taggedVersion=v1.2.3 ..." in builds outside a Git
// repository.
var taggedVersion, taggedCommit, taggedDate string

// developmentBuild is the version of builds that record none, as go run.
const developmentBuild = "development build"

// build describes the running binary.
type build struct {
	Version    string `json:"version"`               // a tag, a pseudo-version, or developmentBuild
	Commit     string `json:"commit,omitempty"`      // in full
	CommitDate string `json:"commit_date,omitempty"` // RFC 3339
	Modified   bool   `json:"modified"`              // differs from the commit
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
}

// thisBuild is the one source of the version in run.json, reports and replies.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info, taggedVersion, taggedCommit, taggedDate)
}

func version() string { return thisBuild().Version }

func buildOf(info *debug.BuildInfo, version, commit, date string) build {
	b := build{Version: version, Commit: commit, CommitDate: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.time":
			b.CommitDate = cmp.Or(b.CommitDate, s.Value)
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	b.Version = cmp.Or(b.Version, developmentBuild)
	return b
}

// String returns the lines that moontide version prints.
func (b build) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "moontide %s\n", b.Version)
	if b.Commit != "" {
		fmt.Fprintf(&text, "commit %.12s", b.Commit)
		if b.CommitDate != "" {
			text.WriteString(" of " + b.CommitDate)
		}
		if b.Modified {
			text.WriteString(", modified")
		}
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "%s %s/%s\n", b.Go, b.OS, b.Arch)
	return text.String()
}

func versionCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Usage: "print version, commit, Go version and platform",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Category: inOutput, Usage: "print JSON instead of text"}},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return misused("version: takes no argument: %q", c.Args().Slice())
			}
			return std.print(func(w io.Writer) error {
				if c.Bool("json") {
					encoder := json.NewEncoder(w)
					encoder.SetIndent("", "  ")
					return encoder.Encode(thisBuild())
				}
				_, err := io.WriteString(w, thisBuild().String())
				return err
			})
		},
	}
}
