package clidoc

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// VerbTable returns a Markdown table of the verbs, which links to the page of each
// in a folder.
func (m *Manual) VerbTable(folder string) string {
	var b strings.Builder
	b.WriteString("| verb | what it does |\n| --- | --- |\n")
	for _, section := range m.Sections {
		fmt.Fprintf(&b, "| **%s** | |\n", section)
		for _, v := range m.Verbs() {
			if v.Section == section {
				fmt.Fprintf(&b, "| [`%s`](%s/%s.md) | %s |\n", v.Name, folder, v.Name, markdown(v.Summary))
			}
		}
	}
	return b.String()
}

// Table returns entries as a Markdown table.
func Table(term, text string, entries []Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s |\n| --- | --- |\n", term, text)
	for _, e := range entries {
		fmt.Fprintf(&b, "| `%s` | %s |\n", e.Term, markdown(e.Text))
	}
	return b.String()
}

// WriteMarkdown writes the reference page of the verb, with every flag.
func (v Verb) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s.\n\n", v.Command, upperFirst(markdown(v.Summary)))
	fmt.Fprintf(&b, "```text\n%s\n```\n", strings.Join(v.Usage, "\n"))
	for _, text := range v.Description {
		b.WriteString("\n" + strings.Join(wrap(markdown(text), 120), "\n") + "\n")
	}
	fmt.Fprintf(&b, "\n## Examples\n\n```text\n%s\n```\n", strings.Join(v.Examples, "\n"))
	for _, g := range v.Groups {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | what it does | default | other names |\n| --- | --- | --- | --- |\n", title(g.Title))
		for _, f := range g.Flags {
			others := ""
			if len(f.OtherNames) > 0 {
				others = "`--" + strings.Join(f.OtherNames, "`, `--") + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Label(), markdown(f.Text), markdown(f.Default), others)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// flagPattern matches the name of a flag in a text.
var flagPattern = regexp.MustCompile(`(^|[ (])(--?[a-z][a-z-]*)`)

// markdown escapes a text for a paragraph or a cell of a table, and sets flags in
// the type of code.
func markdown(text string) string {
	text = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`, "[", `\[`, "~", `\~`).Replace(text)
	return flagPattern.ReplaceAllString(text, "$1`$2`")
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
