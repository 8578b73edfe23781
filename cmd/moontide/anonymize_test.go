package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// An anonymized trace has the lengths, hit rates, curves and sessions of the trace, from
// its first arrival on.
func TestAnonymizedTraceIsAnalyzedAlike(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"traces/conversation.jsonl", "traces/agent.jsonl", "traces/chat.jsonl", "trace/format/testdata/weka", "trace/format/testdata/tracelab.jsonl"} {
		path := absolute(t, root+"/"+name)
		first := regexp.MustCompile(`"timestamp": ([0-9.]+)`).FindStringSubmatch(must(t, dir, "convert", path))[1]
		must(t, dir, "convert", path, "--start", first+"ms", "-o", "before.jsonl")
		must(t, dir, "convert", "--anonymize", path, "-o", "after.jsonl.zst")
		before, after := analysisOf(t, dir, "before.jsonl"), analysisOf(t, dir, "after.jsonl.zst")
		noIDs := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == `["id"]` }, cmp.Ignore())
		if d := cmp.Diff(before, after, noIDs, cmpopts.EquateApprox(1e-9, 1e-9)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		must(t, dir, "check", "after.jsonl.zst")
	}
}

// With one key, the same trace gives the same bytes, and two traces share ids; without
// one, nothing is repeated.
func TestAnonymizeKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := absolute(t, root+"/traces/chat.jsonl")
	run := func(args ...string) string {
		return must(t, dir, append([]string{"convert", "--anonymize", path}, args...)...)
	}
	a, b := run("--key", "k"), run("--key", "k")
	if a != b || a == "" {
		t.Error("one key gives different bytes")
	}
	if a, b := run(), run(); a == b {
		t.Error("no key gives the same bytes twice")
	}
	if info, err := os.Stat(filepath.Join(dir, "k")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if r := try(t, dir, "", "convert", path, "--hash", "user"); r.status != exitMisused {
		t.Error(r.status, r.err)
	}
}

// convert makes a trace of a log, with a key that is made; other verbs say what to do.
func TestConvertLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := absolute(t, root+"/trace/format/testdata/litellm.jsonl")
	r := try(t, dir, "", "analyze", log)
	if r.status != exitFailed || !strings.Contains(r.err, "a log of requests with their texts: first convert it to a trace without them, with moontide convert LOG -o trace.jsonl") {
		t.Error(r.status, r.err)
	}
	must(t, dir, "convert", "--anonymize", log, "-o", "anonymous.jsonl")
	if _, err := os.Stat(filepath.Join(dir, "capture.key")); err == nil {
		t.Error("analyze, or convert --anonymize, makes a key")
	}
	must(t, dir, "convert", log, "-o", "a.jsonl")
	must(t, dir, "convert", "--format", "openai-log", log, "-o", "b.jsonl", "--bytes-per-token", "4")
	must(t, dir, "convert", log, "-o", "other.jsonl", "--key", "other.key")
	text := func(name string) string {
		return readFile(t, filepath.Join(dir, name))
	}
	if text("a.jsonl") != text("b.jsonl") {
		t.Error("one key gives different bytes")
	}
	ids := regexp.MustCompile(`"hash_ids": \[\d+`)
	if text("a.jsonl") == text("other.jsonl") || ids.FindString(text("a.jsonl")) == ids.FindString(text("other.jsonl")) {
		t.Error("two keys give the same ids")
	}
	named := must(t, dir, "convert", log, "--session-field", "metadata.requester_metadata.session_id")
	sessions := regexp.MustCompile(`"session_id": "\w+"`).FindAllString(named, -1)
	if len(sessions) != 6 || sessions[0] != sessions[1] || sessions[0] != sessions[2] || strings.Contains(named, "s-1") {
		t.Error(sessions)
	}
	exact := must(t, dir, "convert", log, "--tokenizer", absolute(t, root+"/traces/tokenizer.json"))
	if ids.FindString(exact) == ids.FindString(text("a.jsonl")) {
		t.Error("a tokenizer changes no id")
	}
	must(t, dir, "check", "a.jsonl")
}
