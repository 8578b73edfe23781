package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	t.Parallel()
	stamped := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.3.0"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-05-04T03:02:01Z"}, {Key: "vcs.modified", Value: "true"},
		},
	}
	platform := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	for name, test := range map[string]struct {
		build build
		want  string
	}{
		"stamped":       {buildOf(stamped, "", "", ""), "moontide v1.3.0\ncommit 0123456789ab of 2026-05-04T03:02:01Z, modified\n"},
		"go run":        {buildOf(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", "", ""), "moontide development build\n"},
		"a test":        {buildOf(&debug.BuildInfo{}, "", "", ""), "moontide development build\n"},
		"from a source": {buildOf(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "v2.0.0", "ffff", "2026-01-01T00:00:00Z"), "moontide v2.0.0\ncommit ffff of 2026-01-01T00:00:00Z\n"},
	} {
		if got := test.build.String(); got != test.want+platform {
			t.Errorf("%s: %q, want %q", name, got, test.want+platform)
		}
	}
}
