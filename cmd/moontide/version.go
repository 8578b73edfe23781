package main

import (
	"cmp"
	"runtime/debug"
)

// taggedVersion is set by -ldflags "-X main.taggedVersion=v1.2.3" in builds outside a
// Git repository.
var taggedVersion string

// version returns the version recorded by Go: a tag, or a pseudo-version with date and commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "(devel)" { // as go run without Git
		info = &debug.BuildInfo{}
	}
	return cmp.Or(taggedVersion, info.Main.Version, "development build")
}
