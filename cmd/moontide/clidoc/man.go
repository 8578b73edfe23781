package clidoc

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// ManPages returns the man pages of section 1, by file name: one of the command and
// one for each verb.
func (m *Manual) ManPages() map[string]func(io.Writer) error {
	pages := map[string]func(io.Writer) error{m.App.Name + ".1": func(w io.Writer) error { return writePage(w, m.commandPage()) }}
	for _, v := range m.Verbs() {
		pages[m.App.Name+"-"+v.Name+".1"] = func(w io.Writer) error { return writePage(w, m.verbPage(v)) }
	}
	return pages
}

func writePage(w io.Writer, p *manPage) error {
	_, err := io.WriteString(w, p.String())
	return err
}

// manPage is a man page in the language of man(7).
type manPage struct{ strings.Builder }

func (m *Manual) newPage(name, summary string) *manPage {
	p := &manPage{}
	date := ""
	if !m.App.Compiled.IsZero() {
		date = m.App.Compiled.UTC().Format(time.DateOnly)
	}
	fmt.Fprintf(p, ".TH %s 1 \"%s\" \"%s %s\"\n", roff(strings.ToUpper(name)), date, m.App.Name, roff(m.App.Version))
	p.section("NAME")
	p.lines(roff(name) + ` \- ` + roff(summary))
	return p
}

func (m *Manual) commandPage() *manPage {
	p := m.newPage(m.App.Name, m.App.Usage)
	p.section("SYNOPSIS")
	p.example(m.App.Name + " VERB [ARGUMENTS] [FLAGS]")
	for _, section := range m.Sections {
		p.section(section)
		for _, v := range m.Verbs() {
			if v.Section == section {
				p.entry(fmt.Sprintf(`\fB%s\-%s\fR(1)`, roff(m.App.Name), roff(v.Name)), v.Summary)
			}
		}
	}
	p.section("EXAMPLES")
	p.example(commandLines(m.App.Name, m.Examples)...)
	p.entries("EXIT STATUS", m.Statuses)
	p.paragraph("Where several apply, the one listed first prevails.")
	p.entries("ENVIRONMENT", m.Environment)
	p.entries("FILES", m.Files)
	return p
}

func (m *Manual) verbPage(v Verb) *manPage {
	p := m.newPage(m.App.Name+"-"+v.Name, v.Summary)
	p.section("SYNOPSIS")
	p.example(v.Usage...)
	if len(v.Description) > 0 {
		p.section("DESCRIPTION")
	}
	for i, text := range v.Description {
		if i > 0 {
			p.WriteString(".PP\n")
		}
		p.text(text)
	}
	if len(v.Groups) > 0 {
		p.section("OPTIONS")
	}
	for _, g := range v.Groups {
		fmt.Fprintf(p, ".SS %s\n", roff(title(g.Title)))
		if g.Elsewhere.Verb != "" {
			p.text(fmt.Sprintf("%s: see %s-%s(1).", g.Elsewhere.Text, m.App.Name, g.Elsewhere.Verb))
			continue
		}
		for _, f := range g.Flags {
			label := strings.TrimSuffix(f.Label(), " "+f.Placeholder)
			label = `\fB` + roff(label) + `\fR`
			if f.Placeholder != "" {
				label += ` \fI` + roff(f.Placeholder) + `\fR`
			}
			p.entry(label, f.Help())
		}
	}
	p.section("EXAMPLES")
	p.example(v.Examples...)
	p.section("SEE ALSO")
	fmt.Fprintf(p, ".BR %s (1)\n", roff(m.App.Name))
	return p
}

func (p *manPage) section(name string) { fmt.Fprintf(p, ".SH %s\n", roff(strings.ToUpper(name))) }

func (p *manPage) paragraph(text string) {
	p.WriteString(".PP\n")
	p.text(text)
}

// text writes a text as one line for each sentence, as troff spaces them.
func (p *manPage) text(text string) {
	text = strings.Join(strings.Fields(text), " ")
	for sentence := range strings.SplitAfterSeq(text, ". ") {
		p.lines(roff(sentence))
	}
}

// manWidth is the length of a line in the source of a man page, short of the 80
// columns that mandoc wants.
const manWidth = 78

// lines writes text that is in roff already.
func (p *manPage) lines(text string) {
	for _, line := range wrap(text, manWidth) {
		p.WriteString(line1(line) + "\n")
	}
}

// entry writes a term, in roff already, and its text.
func (p *manPage) entry(term, text string) {
	fmt.Fprintf(p, ".TP\n%s\n", line1(term))
	p.text(text)
}

func (p *manPage) entries(section string, all []Entry) {
	p.section(section)
	for _, e := range all {
		p.entry(`\fB`+roff(e.Term)+`\fR`, e.Text)
	}
}

// example writes lines as they are.
func (p *manPage) example(lines ...string) {
	p.WriteString(".EX\n")
	for _, line := range lines {
		p.WriteString(line1(roff(line)) + "\n")
	}
	p.WriteString(".EE\n")
}

// roff escapes a text: hyphens and quotes remain those of ASCII, which can be copied.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\(ga", "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`, "µ", `\(mc`).Replace(text)
}

// line1 protects the start of a line that would be a request.
func line1(text string) string {
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

// title returns a heading in upper case as a title: "RUN CONTROL" is "Run control".
// Flags in it stay as they are.
func title(heading string) string {
	words := strings.Fields(heading)
	for i, word := range words {
		if word == strings.ToUpper(word) {
			word = strings.ToLower(word)
		}
		if i == 0 {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}
