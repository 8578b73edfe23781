package clidoc

import (
	"reflect"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Manual is the documentation of a command.
type Manual struct {
	App      *cli.App
	Pages    map[string]Page // by verb
	Sections []string        // of the list of verbs, in display order
	Groups   []string        // of flags, in display order
	Examples []string        // command lines without the name of the command
	// Elsewhere lists groups whose flags are documented with another verb, to which
	// the pages of the other verbs refer.
	Elsewhere map[string]Reference
	// OtherNames returns the names that a flag is accepted under besides its own.
	OtherNames func(verb *cli.Command, f cli.Flag) []string
	// Lists for the man pages.
	Statuses, Environment, Files []Entry
}

// Page is the documentation of a verb that its [cli.Command] does not hold.
type Page struct {
	Section   string   // in the list of verbs
	Usage     []string // printed after the name of the verb
	Examples  []string // the same
	Common    []string // the most used flags
	Arguments Values
}

// Reference names the verb that documents a group of flags.
type Reference struct{ Verb, Text string }

// Entry is a term and its explanation.
type Entry struct{ Term, Text string }

// Values tells what completes an argument, or the value of a flag.
type Values struct {
	Files, Folders bool
	Verbs          bool
	Choices        Choices
}

// Verb is the documentation of a verb.
type Verb struct {
	Command     string // as typed: "moontide replay"
	Name        string
	Section     string
	Summary     string
	Usage       []string // whole command lines
	Examples    []string
	Description []string // paragraphs
	Groups      []Group
	Arguments   Values
}

// Group is a group of flags.
type Group struct {
	Title     string
	Flags     []Flag
	Elsewhere Reference // set if another verb documents the flags
}

// Flag is the documentation of a flag.
type Flag struct {
	Name        string
	Short       []string // one-letter names
	Placeholder string   // "" if the flag takes no value
	Text        string
	Default     string // "" if there is none
	OtherNames  []string
	Repeatable  bool
	Values      Values
}

// Verbs returns all verbs that are not hidden, in the order of the app.
func (m *Manual) Verbs() (all []Verb) {
	for _, c := range m.App.Commands {
		if !c.Hidden {
			all = append(all, m.Verb(c))
		}
	}
	return all
}

const commonTitle = "COMMON"

// Verb returns the documentation of a verb.
func (m *Manual) Verb(c *cli.Command) Verb {
	page := m.Pages[c.Name]
	v := Verb{
		Command: m.App.Name + " " + c.Name, Name: c.Name, Section: page.Section, Summary: c.Usage, Arguments: page.Arguments,
		Usage: commandLines(m.App.Name+" "+c.Name, page.Usage), Examples: commandLines(m.App.Name+" "+c.Name, page.Examples),
	}
	if c.Description != "" {
		v.Description = strings.Split(c.Description, "\n\n")
	}
	byTitle := map[string][]Flag{}
	for _, name := range page.Common {
		for _, f := range c.VisibleFlags() {
			if f.Names()[0] == name {
				byTitle[commonTitle] = append(byTitle[commonTitle], m.flag(c, f))
			}
		}
	}
	for _, f := range c.VisibleFlags() {
		if name := f.Names()[0]; name != "help" && !slices.Contains(page.Common, name) {
			title := CategoryOf(f)
			byTitle[title] = append(byTitle[title], m.flag(c, f))
		}
	}
	for _, title := range append([]string{commonTitle}, m.Groups...) {
		if flags := byTitle[title]; len(flags) > 0 {
			g := Group{Title: title, Flags: flags}
			if r := m.Elsewhere[title]; r.Verb != c.Name {
				g.Elsewhere = r
			}
			v.Groups = append(v.Groups, g)
		}
	}
	return v
}

func commandLines(command string, arguments []string) (lines []string) {
	for _, args := range arguments {
		lines = append(lines, strings.TrimRight(command+" "+args, " "))
	}
	return lines
}

// Flags returns the flags of all groups.
func (v Verb) Flags() (all []Flag) {
	for _, g := range v.Groups {
		all = append(all, g.Flags...)
	}
	return all
}

// CategoryOf returns the group of a flag.
func CategoryOf(f cli.Flag) string {
	if c, ok := f.(cli.CategorizableFlag); ok {
		return c.GetCategory()
	}
	return ""
}

func (m *Manual) flag(verb *cli.Command, f cli.Flag) Flag {
	usage := f.(cli.DocGenerationFlag).GetUsage()
	described := Flag{Name: f.Names()[0], Default: defaultOf(f), Text: usage}
	for _, name := range f.Names()[1:] {
		if len(name) == 1 {
			described.Short = append(described.Short, name)
		}
	}
	if m.OtherNames != nil {
		described.OtherNames = m.OtherNames(verb, f)
	}
	if _, rest, found := strings.Cut(usage, "`: "); found && usage[0] == '`' {
		described.Text = rest
	}
	described.Text = strings.ReplaceAll(described.Text, "`", "")
	if f.(cli.DocGenerationFlag).TakesValue() {
		described.Placeholder = placeholder(f, usage)
	}
	if list, ok := f.(cli.DocGenerationSliceFlag); ok {
		described.Repeatable = list.IsSliceFlag()
	}
	described.Values = Values{
		Files:   slices.Contains([]string{"FILE", "TRACE"}, described.Placeholder),
		Folders: described.Placeholder == "DIR",
	}
	if c, ok := f.(interface{ Accepted() Choices }); ok {
		described.Values.Choices = c.Accepted()
	}
	return described
}

// placeholder returns the name of a flag's value: the one in backquotes in its
// usage text, which does not show it in the help if it precedes a colon.
func placeholder(f cli.Flag, usage string) string {
	_, rest, found := strings.Cut(usage, "`")
	if name, _, closed := strings.Cut(rest, "`"); found && closed {
		return name
	}
	switch f.(type) {
	case *cli.IntFlag, *cli.Uint64Flag:
		return "N"
	case *cli.DurationFlag:
		return "TIME"
	}
	return "VALUE"
}

// defaultOf returns the default of a flag, or "" if there is none.
func defaultOf(f cli.Flag) string {
	if text := reflect.ValueOf(f).Elem().FieldByName("DefaultText").String(); text != "" {
		return text
	}
	switch text := f.(cli.DocGenerationFlag).GetValue(); text {
	case "0", "0s", "false", "[]":
		return ""
	default:
		return PlainDuration(text)
	}
}

// PlainDuration removes "0m0s" and "0s" from the text of a duration.
func PlainDuration(text string) string {
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Notes returns the default and the other names of a flag, in words.
func (f Flag) Notes() (notes []string) {
	if f.Default != "" {
		notes = append(notes, "default: "+f.Default)
	}
	if len(f.OtherNames) > 0 {
		notes = append(notes, "also --"+strings.Join(f.OtherNames, ", --"))
	}
	return notes
}

// Help returns the text of a flag with its notes.
func (f Flag) Help() string {
	if notes := f.Notes(); len(notes) > 0 {
		return f.Text + " (" + strings.Join(notes, "; ") + ")"
	}
	return f.Text
}

// Label returns the flag with its one-letter names and placeholder.
func (f Flag) Label() string {
	label := "--" + f.Name
	for _, name := range f.Short {
		label = "-" + name + ", " + label
	}
	if f.Placeholder != "" {
		label += " " + f.Placeholder
	}
	return label
}
