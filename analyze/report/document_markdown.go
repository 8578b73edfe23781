package report

import (
	"bytes"
	"fmt"
	"strings"
)

// markdown writes the document with tables as GitHub reads them, without its
// figures.
func (d *document) markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n", titleCase(d.title), markdownText(d.subject))
	for _, s := range d.sections {
		if s.onlyFigures() {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", markdownText(s.title))
		inRows := false
		for _, p := range s.parts {
			if p.row != nil && !inRows {
				b.WriteString("\n| | value | unit | |\n| --- | ---: | --- | --- |\n")
			}
			inRows = p.row != nil
			switch {
			case p.row != nil:
				markdownRow(&b, p.row.label, p.row.value, p.row.unit, p.row.note)
			case p.paragraph != "":
				fmt.Fprintf(&b, "\n%s\n", markdownText(p.paragraph))
			case p.table != nil:
				b.WriteByte('\n')
				markdownRow(&b, p.table.columns...)
				rule := " | ---:"
				if p.table.words {
					rule = " | ---"
				}
				b.WriteString("| ---" + strings.Repeat(rule, len(p.table.columns)-1) + " |\n")
				for _, row := range p.table.rows {
					markdownRow(&b, row...)
				}
			}
		}
	}
	return b.Bytes()
}

func markdownRow(b *bytes.Buffer, cells ...string) {
	for _, cell := range cells {
		b.WriteString("| " + markdownText(cell) + " ")
	}
	b.WriteString("|\n")
}

// markdownText keeps text from being read as markup.
func markdownText(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`).Replace(oneLine(s))
}

// titleCase writes a title in capitals as an ordinary heading.
func titleCase(s string) string {
	if s == "" || s != strings.ToUpper(s) {
		return s
	}
	return s[:1] + strings.ToLower(s[1:])
}
