package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// choiceSet is the set of values of a flag or an argument, for validation and help.
type choiceSet struct {
	Names []string
	// Notes explain values, by name; they are shown in the help.
	Notes map[string]string
	// List accepts several values, separated by commas.
	List bool
	// Open means that there are other values or spellings, checked elsewhere.
	Open bool
}

// oneOf returns the choices among names.
func oneOf[T ~string](names ...T) (c choiceSet) {
	for _, name := range names {
		c.Names = append(c.Names, string(name))
	}
	return c
}

// Noted returns the choices with a note on one of them.
func (c choiceSet) Noted(name, text string) choiceSet {
	notes := map[string]string{name: text}
	for name, text := range c.Notes {
		notes[name] = text
	}
	c.Notes = notes
	return c
}

// String returns the choices in words: "a, b (note) or c".
func (c choiceSet) String() string {
	var b strings.Builder
	for i, name := range c.Names {
		switch {
		case i > 0 && i == len(c.Names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(name)
		if note := c.Notes[name]; note != "" {
			b.WriteString(" (" + note + ")")
		}
	}
	return b.String()
}

// In returns a usage text with the choices in place of %s.
func (c choiceSet) In(usage string) string { return strings.Replace(usage, "%s", c.String(), 1) }

// Resolve returns a value in the spelling of the choices. It ignores case, and accepts _ for
// -.
func (c choiceSet) Resolve(text string) (string, error) {
	if c.Open {
		return text, nil
	}
	parts := []string{text}
	if c.List {
		parts = strings.Split(text, ",")
	}
	for i, part := range parts {
		name := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(part)), "_", "-")
		if !slices.Contains(c.Names, name) {
			return "", fmt.Errorf("%q is unknown: use %s", part, choiceSet{Names: c.Names})
		}
		parts[i] = name
	}
	return strings.Join(parts, ","), nil
}

// choiceFlag is a flag with a set of values.
type choiceFlag struct {
	cli.StringFlag
	Choices choiceSet
}

// GetUsage returns the usage text with the values in place of %s.
func (f *choiceFlag) GetUsage() string { return f.Choices.In(f.Usage) }

// Accepted returns the values.
func (f *choiceFlag) Accepted() choiceSet { return f.Choices }

// String returns the flag as the help shows it.
func (f *choiceFlag) String() string { return cli.FlagStringer(f) }
