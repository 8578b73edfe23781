package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"moontide/replay/runfile"
	"moontide/trace/tracetest"
)

// A transcript in testdata has commands and what they print: their data, messages after !
// and an exit status that is not 0 after =. "> NAME" is followed by the content of a file,
// "< NAME" at the end of a command is its standard input, and "| PATTERN" shows only the
// matches in its data. $T and $F are the traces, those of other tools, and $S the sample.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, dir string){"convert": nil, "analyze": nil, "synth": nil, "report": damagedRuns} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if prepare != nil {
				prepare(t, dir)
			}
			path := "testdata/" + name + ".txt"
			tracetest.Golden(t, path, currentTranscript(t, dir, readFile(t, path)))
		})
	}
}

// currentTranscript returns a transcript with what its commands print now.
func currentTranscript(t *testing.T, dir, transcript string) string {
	t.Helper()
	places := []string{"$T", absolute(t, root+"/traces"), "$F", absolute(t, root+"/trace/format/testdata"), "$S", sample(t)}
	var names []string
	for i := 0; i < len(places); i += 2 {
		names = append(names, places[i+1], places[i])
	}
	var got strings.Builder
	file, content := "", ""
	for line := range strings.Lines(transcript) {
		text, indented := strings.CutPrefix(line, "  ")
		if indented && file == "" { // what a command printed
			continue
		}
		got.WriteString(line)
		switch name, isFile := strings.CutPrefix(line, "> "); {
		case indented:
			content += text
			os.Chmod(write(t, dir, file, content), 0o600) // as keys must be
		case isFile:
			file, content = strings.TrimSpace(name), ""
		case line != "\n" && line[0] != '#':
			file = ""
			r, matches := runLine(t, dir, strings.NewReplacer(places...).Replace(line))
			got.WriteString(strings.NewReplacer(names...).Replace(matches + messagesOf(r)))
		}
	}
	return got.String()
}

// runLine runs a command of a transcript and returns the shown part of its data.
func runLine(t *testing.T, dir, command string) (r result, shown string) {
	t.Helper()
	command, pattern, _ := strings.Cut(strings.TrimSpace(command), " | ")
	command, stdin, piped := strings.Cut(command, " < ")
	if piped {
		stdin = readFile(t, filepath.Join(dir, stdin))
	}
	var args []string
	for _, word := range argument.FindAllString(command, -1) {
		args = append(args, strings.ReplaceAll(word, "'", ""))
	}
	r = try(t, dir, stdin, args...)
	if pattern == "" {
		pattern = ".+"
	}
	for _, match := range regexp.MustCompile(pattern).FindAllString(r.out, -1) {
		shown += "  " + strings.Join(strings.Fields(match), " ") + "\n"
	}
	return r, shown
}

func messagesOf(r result) (text string) {
	for line := range strings.Lines(r.err) {
		text += "  ! " + strings.TrimPrefix(line, "moontide: ")
	}
	if r.status != exitDone {
		text += "  = " + strconv.Itoa(r.status) + "\n"
	}
	return text
}

// damagedRuns makes a run whose prompts have other lengths, one that did not end, and one
// whose record was cut by a kill.
func damagedRuns(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"spoiled", "killed", "cut"} {
		must(t, dir, "simulate", sample(t), "--out", name)
	}
	rewritten(t, filepath.Join(dir, "spoiled", runfile.RequestsFile), func(text string) string {
		return strings.ReplaceAll(text, `"input_tokens": `, `"input_tokens": 1`)
	})
	rewritten(t, filepath.Join(dir, "cut", runfile.RequestsFile), func(text string) string { return text[:len(text)-40] })
	rewritten(t, filepath.Join(dir, "killed", runfile.RunFile), func(text string) string {
		return strings.Replace(text, `"ended": "`, `"not_ended": "`, 1)
	})
}
