package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"moontide/replay/settings"
)

// update writes the generated pages and schemas instead of comparing them: see
// go generate.
var update = flag.Bool("update-docs", false, "write generated files")

// current checks that a generated file is what it should be, or writes it.
func current(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		write(t, "", path, want)
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not current: run go generate ./cmd/moontide (%v)", path, err)
	}
}

// The reference has a page for each verb, its help, one of all settings, and no other.
func TestReference(t *testing.T) {
	current(t, "reference/settings.md", settingsPage())
	for _, c := range allVerbs() {
		current(t, filepath.Join("reference", c.Name+".md"), fmt.Sprintf("# moontide %s\n\n```text\n%s```\n", c.Name, must(t, t.TempDir(), c.Name, "--help")))
	}
	if pages := files(t, "reference"); len(pages) != len(allVerbs())+1 {
		t.Errorf("%d verbs have %d pages: %q", len(allVerbs()), len(pages), pages)
	}
}

// settingsPage returns the reference of settings.
func settingsPage() string {
	var b strings.Builder
	b.WriteString("# Settings of a run\n\nA file of `--config` has settings by name, such as `max-concurrency: 8`, and `--set NAME=VALUE` sets one. A name in bold is no " +
		"flag. Settings of a live run have no effect in virtual time.\n")
	group := settings.Group("")
	for i := range settings.Table {
		row := &settings.Table[i]
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(&b, "\n## %s\n\n| setting | what it is | default | values | other names |\n| --- | --- | --- | --- | --- |\n", group)
		}
		name := "`" + row.Name + "`"
		if row.File {
			name = "**" + name + "**"
		}
		var values []string
		if row.Range != nil {
			values = append(values, row.Range.String())
		}
		if row.Choices != nil {
			values = append(values, "one of the names")
		}
		if row.Axis {
			values = append(values, "a list makes a set")
		}
		if row.Mode == settings.Live {
			values = append(values, "live")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, strings.NewReplacer("`", "", "|", "\\|").Replace(row.Usage()), row.Default, strings.Join(values, "; "), strings.Join(row.Others, ", "))
	}
	return b.String()
}

// verbTable returns the verbs by section, with links to their pages.
func verbTable() string {
	var b strings.Builder
	b.WriteString("| verb | what it does |\n| --- | --- |\n")
	section := ""
	for _, c := range allVerbs() {
		if c.Category != section {
			section = c.Category
			fmt.Fprintf(&b, "| **%s** | |\n", section)
		}
		fmt.Fprintf(&b, "| [`%s`](reference/%s.md) | %s |\n", c.Name, c.Name, c.Usage)
	}
	return b.String()
}

// otherNamesTable returns the flags of other tools that are accepted.
func otherNamesTable() string {
	var b strings.Builder
	b.WriteString("| flag | stands for |\n| --- | --- |\n")
	for _, row := range settings.Table {
		if len(row.Others) > 0 {
			fmt.Fprintf(&b, "| `--%s` | `--%s` |\n", strings.Join(row.Others, "`, `--"), row.Name)
		}
	}
	return b.String()
}

// The generated parts of README.md are current.
func TestReferenceReadme(t *testing.T) {
	parts := map[string]string{
		"verbs":      verbTable(),
		"othernames": otherNamesTable(),
		"schemas":    schemaTable(),
	}
	text := read(t, "README.md")
	page := regexp.MustCompile(`(?s)<!-- generated: (\w+) -->\n.*?<!-- end -->`).ReplaceAllStringFunc(string(text), func(part string) string {
		name := regexp.MustCompile(`\w+`).FindString(strings.TrimPrefix(part, "<!-- generated: "))
		content, ok := parts[name]
		if !ok {
			t.Errorf("README.md has an unknown part %q", name)
		}
		delete(parts, name)
		return fmt.Sprintf("<!-- generated: %s -->\n%s<!-- end -->", name, content)
	})
	if len(parts) > 0 {
		t.Errorf("README.md lacks parts: %v", parts)
	}
	current(t, "README.md", page)
}

// The command itself prints its version, licenses, man page and completion scripts.
func TestAbout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for flag, want := range map[string]string{
		"--version": "moontide ", "--licenses": "github.com/urfave/cli/v2", "--man": "\n.TH moontide 1", "--help": "\n     replay ",
		"--completion=bash": "complete -o", "--completion=zsh": "#compdef moontide", "--completion=fish": "complete -c moontide",
	} {
		for range 2 { // the library's global state
			if out := must(t, dir, flag); !strings.Contains("\n"+out, want) {
				t.Errorf("%s: no %q in\n%.2000s", flag, want, out)
			}
		}
	}
	if must(t, dir) != must(t, dir, "help") {
		t.Error("moontide without arguments differs from moontide help")
	}
}

// The bash script completes verbs, flags in any place, and files.
func TestCompletion(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	write(t, dir, "script", must(t, dir, "--completion", "bash"))
	if err := os.Symlink(absolute(t, os.Args[0]), filepath.Join(dir, "moontide")); err != nil {
		t.Skipf("cannot link: %v", err)
	}
	for line, want := range map[string]string{"moontide rep": "replay\nreport\n", "moontide replay t.jsonl --max-c": "--max-concurrency\n", "moontide analyze --htm": "--html\n", "moontide fit --": "*--output\n"} {
		cmd := moontide(dir)
		cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "-c", `source ./script; read -ra COMP_WORDS <<<"$LINE"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _moontide; printf '%s\n' "${COMPREPLY[@]}"`}
		cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"), "LINE="+line)
		if r := finish(t, cmd); r.out != want && (want[0] != '*' || !strings.Contains(r.out, want[1:])) {
			t.Errorf("%s: %q, want %q; %s", line, r.out, want, r.err)
		}
	}
}

// Every flag with a fixed set of values refuses all others, with a message that names
// the set.
func TestChoicesAreThoseAccepted(t *testing.T) {
	t.Parallel()
	flags := 0
	for _, verb := range allVerbs() {
		for _, f := range verb.Flags {
			var names []string
			switch f := f.(type) {
			case *choiceFlag:
				if !f.Choices.Open {
					names = f.Choices.Names
				}
			case *settingFlag:
				for _, choice := range f.row.Choices {
					if !f.row.Open {
						names = append(names, choice.Name)
					}
				}
			}
			if names == nil {
				continue
			}
			flags++
			r := try(t, t.TempDir(), "", verb.Name, "--"+f.Names()[0], "nonsense")
			for _, name := range names {
				if r.status != exitMisused || !strings.Contains(r.err, name) {
					t.Errorf("%s --%s nonsense: exit status %d, %s", verb.Name, f.Names()[0], r.status, r.err)
				}
			}
		}
	}
	if flags < 15 {
		t.Errorf("only %d flags have choices", flags)
	}
}
