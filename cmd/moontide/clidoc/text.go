package clidoc

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// HelpWidth is the width of all help texts in columns.
const HelpWidth = 80

// Columns where the texts of verbs and flags start.
const verbColumn, flagColumn = 13, 28

// WriteHelp writes the list of verbs.
func (m *Manual) WriteHelp(w io.Writer) error {
	var b strings.Builder
	name := m.App.Name
	fmt.Fprintf(&b, "%s - %s\n\nUSAGE\n  %s VERB [ARGUMENTS] [FLAGS]\n", name, m.App.Usage, name)
	for _, section := range m.Sections {
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(section))
		for _, c := range m.App.Commands {
			if !c.Hidden && m.Pages[c.Name].Section == section {
				entry(&b, c.Name, verbColumn, c.Usage)
			}
		}
	}
	b.WriteString("\nEXAMPLES\n")
	for _, line := range commandLines(name, m.Examples) {
		shellCommand(&b, "  "+line)
	}
	b.WriteString("\n")
	paragraph(&b, fmt.Sprintf("Run '%s VERB --help' for the flags of a verb, '%s --version' for the version.", name, name))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteHelp writes the help of the verb.
func (v Verb) WriteHelp(w io.Writer) error {
	var b strings.Builder
	paragraph(&b, v.Command+" - "+v.Summary)
	for title, lines := range v.commands {
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, line := range lines {
			shellCommand(&b, "  "+line)
		}
	}
	for _, text := range v.Description {
		b.WriteString("\n")
		paragraph(&b, text)
	}
	for _, g := range v.Groups {
		fmt.Fprintf(&b, "\n%s\n", g.Title)
		if g.Elsewhere.Verb != "" {
			command, _, _ := strings.Cut(v.Command, " ")
			fmt.Fprintf(&b, "  %s: see '%s %s --help'.\n", g.Elsewhere.Text, command, g.Elsewhere.Verb)
			continue
		}
		for _, f := range g.Flags {
			entry(&b, f.Label(), flagColumn, f.Help())
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// commands yields the usage lines and the examples.
func (v Verb) commands(yield func(title string, lines []string) bool) {
	_ = yield("USAGE", v.Usage) && yield("EXAMPLES", v.Examples)
}

// entry writes a name and a text in two columns.
func entry(b *strings.Builder, name string, column int, text string) {
	line := "  " + name
	for i, part := range wrap(text, HelpWidth-column) {
		if i == 0 && len(line) > column-2 {
			b.WriteString(line + "\n")
			line = ""
		} else if i > 0 {
			line = ""
		}
		fmt.Fprintf(b, "%-*s%s\n", column, line, part)
	}
}

// shellCommand writes a command line, broken into several lines if it is long.
func shellCommand(b *strings.Builder, line string) {
	for utf8.RuneCountInString(line) > HelpWidth {
		cut := strings.LastIndex(line[:HelpWidth-1], " ")
		if flag := strings.LastIndex(line[:HelpWidth-1], " --"); flag > HelpWidth/2 { // keep the flag with its value
			cut = flag
		}
		b.WriteString(line[:cut] + " \\\n")
		line = "      " + line[cut+1:]
	}
	b.WriteString(line + "\n")
}

func paragraph(b *strings.Builder, text string) {
	for _, line := range wrap(text, HelpWidth) {
		b.WriteString(line + "\n")
	}
}

// wrap wraps a text into lines.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line == "" {
		return lines
	}
	return append(lines, line)
}
