package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// hostileName has a terminal title, a colour, a C1 control sequence, a carriage
// return, a tab and DEL.
const hostileName = "t\x1b]0;owned\x07\x1b[31m\u009b31m\r\t\x7f\u202e"

// Control characters in names of files, folders and models never reach the
// console, in any verb, form or message.
func TestControlCharactersInNamesStayOffTheConsole(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	trace, broken := hostileName+".jsonl", hostileName+"broken.jsonl"
	row := `{"timestamp": %d, "input_length": 20, "output_length": 2, "hash_ids": [%d, %d], "session_id": "s\u001b[31m\u009b%d"}` + "\n"
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, row, 10*i, i%3, 10+i, i)
	}
	write(t, dir, trace, text.String())
	write(t, dir, broken, text.String()+`{"timestamp": "\u001b[31m`+"\x1b[31m\u009b"+`", "input_length": 1}`+"\n")
	run, other, sweep := hostileName+"run", hostileName+"other", hostileName+"sweep"
	for _, args := range [][]string{
		{"analyze", trace}, {"analyze", trace, "--json"}, {"analyze", trace, "--output", "markdown"}, {"analyze", trace, trace},
		{"analyze", broken}, {"analyze", broken, "--skip-bad-rows"},
		{"analyze", trace, "--html", hostileName + "/no.html"},
		{"check", trace}, {"check", trace, "--json"}, {"check", broken}, {"check", broken, "--json"}, {"check", hostileName},
		{"convert", trace, "-o", hostileName + "out.jsonl"}, {"convert", broken, "-o", hostileName + "out.jsonl"}, {"convert", trace, "-o", trace},
		{"fit", trace, "-o", hostileName + "model.json"}, {"fit", broken},
		{"synth", "--from", trace, "-n", "20", "-o", hostileName + "synth.jsonl"}, {"synth", "--from", broken}, {"synth", "--spec", hostileName},
		{"simulate", trace, "--out", run}, {"simulate", trace, "--out", run}, {"simulate", broken, "--out", "never"},
		{"replay", trace, "--url", url, "--out", other}, {"replay", broken, "--url", url}, {"replay", trace, "--resume", run},
		{"replay", trace, "--url", url, "--model", hostileName, "--out", hostileName + "third"},
		{"replay", trace, "--url", "http://" + hostileName}, {"replay", trace, "--" + hostileName, "1"},
		{"report", run}, {"report", run, "--json"}, {"report", run, "--output", "csv"}, {"report", run, "--output", "markdown"},
		{"report", run, "--output", "vllm"}, {"report", run, "--output", "aiperf"},
		{"report", run, other}, {"report", hostileName + "=" + run, "--output", "markdown"}, {"report", run, "--format", hostileName},
		{"report", run, "--html", "-"}, {"report", hostileName},
		{"compare", run, other, "--force"}, {"compare", run, other}, {"compare", run, other, "--force", "--json"},
		{"compare", run, other, "--force", "--output", "csv"}, {"compare", run, other, "--force", "--output", "markdown"}, {"compare", run, hostileName},
		{"bench", "--isl", "20", "--osl", "2", "--concurrency", "1", "--num-prompts", "4", "--url", hostileName + "=" + url, "--out", sweep},
		{"bench", "--isl", "20", "--osl", "2", "--concurrency", "1", "--num-prompts", "4", "--url", hostileName + "=" + url, "--out", sweep + "2", "--output", "csv"},
		{hostileName}, {hostileName, "--help"}, {"replay", hostileName, "--help"}, {"replay", "--help=" + hostileName},
		{"serve", "--listen", hostileName}, {"help", hostileName},
	} {
		r := try(t, dir, "", args...)
		for stream, text := range map[string]string{"output": r.out, "error": r.err} {
			for i, c := range text {
				if c != '\n' && !strconv.IsPrint(c) {
					t.Errorf("moontide %q: %q on standard %s: %q", args, c, stream, text[max(i-60, 0):min(i+20, len(text))])
					break
				}
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, run, "report.html")); err != nil {
		t.Error(err)
	}
}
