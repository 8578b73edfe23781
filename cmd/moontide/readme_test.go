package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// transcript is one command of a console block and its output.
type transcript struct{ command, output string }

// transcripts finds the console blocks of a document. A block has commands
// after "$ ", each followed by its output.
func transcripts(t *testing.T, path string) []transcript {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []transcript
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				found = append(found, transcript{command: strings.TrimSpace(command)})
			} else {
				found[len(found)-1].output += line
			}
		}
	}
	return found
}

// These differ from run to run: measured numbers, the number of progress
// reports, which requests found the prefix cache as predicted, and, on a busy
// machine, the verdict.
var (
	progressPattern = regexp.MustCompile(`(?m)^moontide: \S+ of \S+ \| sent .*\n`)
	causePattern    = regexp.MustCompile(`(?m)^  (difference|cold|pending|evicted|overtaken) .*\n( {20,}.*\n)*`)
	verdictPattern  = regexp.MustCompile(`VALID|SUSPECT|INVALID|(?m)^  (valid  |suspect|invalid)`)
	numberPattern   = regexp.MustCompile(`[0-9][0-9.:]*(µs|ms|s|m)?`)
	spacePattern    = regexp.MustCompile(`\s+`) // lines are wrapped by their width
)

func masked(output string) string {
	output = progressPattern.ReplaceAllString(output, "")
	output = causePattern.ReplaceAllString(output, "")
	output = verdictPattern.ReplaceAllString(output, "<verdict>")
	output = numberPattern.ReplaceAllString(output, "#")
	output = spacePattern.ReplaceAllString(output, " ")
	output = remedyPattern.ReplaceAllString(output, "")
	return pausePattern.ReplaceAllString(output, "no GC pauses")
}

// A slow machine may be SUSPECT, with a remedy, and may have GC pauses.
var (
	remedyPattern = regexp.MustCompile(`<verdict> from # ms, |: [^:]*use a larger client machine or fewer streams`)
	pausePattern  = regexp.MustCompile(`longest GC pause # ms \(# in total\)`)
)

// The README's commands print the output shown in the README.
func TestReadme(t *testing.T) {
	t.Parallel()
	found := transcripts(t, root+"/README.md")
	if len(found) < 3 {
		t.Fatalf("%d transcripts", len(found))
	}
	for _, tr := range found {
		t.Run(tr.command, func(t *testing.T) {
			t.Parallel()
			args, ok := strings.CutPrefix(tr.command, "go run ./cmd/moontide ")
			if !ok {
				t.Fatalf("not a command of moontide: %s", tr.command)
			}
			args, lines := withoutHead(args)
			dir := t.TempDir()
			if err := os.Symlink(absolute(t, root+"/traces"), filepath.Join(dir, "traces")); err != nil {
				t.Skipf("cannot link the sample traces: %v", err)
			}
			cmd := moontide(dir, strings.Fields(args)...)
			output, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != exitDone && code != exitInvalid {
				t.Fatalf("%v\n%s", err, output)
			}
			got, want := firstLines(string(output), lines), tr.output
			if strings.HasPrefix(args, "replay ") {
				got, want = masked(got), masked(want)
				if !strings.Contains(string(output), "Failed requests:                         0\n") {
					t.Errorf("requests failed:\n%s", output)
				}
			}
			if got != want {
				t.Errorf("it prints\n%s\nand the README says\n%s", got, want)
			}
		})
	}
}

// withoutHead removes "| head -n N" from a command; without it, N is the whole
// output.
func withoutHead(command string) (args string, lines int) {
	args, head, cut := strings.Cut(command, " | head -n ")
	if lines, err := strconv.Atoi(head); cut && err == nil {
		return args, lines
	}
	return command, math.MaxInt
}

func firstLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[:min(n, len(lines))], "")
}

// The README's test command is the one used by continuous integration.
func TestReadmeTestCommand(t *testing.T) {
	t.Parallel()
	const command = "go test ./..."
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(root + "/.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "\n"+command+" ") || !strings.Contains(string(script), "\n"+command+"\n") {
		t.Errorf("%s is not in both", command)
	}
}
