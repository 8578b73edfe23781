package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by -ldflags "-X main.taggedVersion=v1.2.3 ..." in builds outside a Git
// repository.
var taggedVersion, taggedCommit, taggedDate string

// developmentBuild is the version of builds that record none, as go run.
const developmentBuild = "development build"

// build describes the running binary.
type build struct {
	Version    string // a tag, a pseudo-version, or developmentBuild
	Commit     string // in full
	CommitDate string // RFC 3339
	Modified   bool   // differs from the commit
	Go         string
	OS         string
	Arch       string
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

// String returns the lines that moontide --version prints.
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
