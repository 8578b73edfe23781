package clidoc

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Completions are the ways to continue a command line.
type Completions struct {
	Words []Completion
	// Files and Folders ask the shell to complete file names too.
	Files, Folders bool
	// Continues is set if the words are not complete: no space follows.
	Continues bool
}

// Completion is one word that completes the command line.
type Completion struct{ Word, Text string }

// Complete completes the last of words, the command line without the command's own
// name. A shell passes "" for a word that is not begun.
func (m *Manual) Complete(words []string) Completions {
	if len(words) == 0 {
		return Completions{}
	}
	current, words := words[len(words)-1], words[:len(words)-1]
	if len(words) == 0 {
		return Completions{Words: m.verbWords()}.matching(current)
	}
	verb := m.App.Command(words[0])
	if verb == nil {
		return Completions{}
	}
	line := lineUpTo(m.Verb(verb), words[1:])
	flag, value, joined := strings.Cut(current, "=")
	switch {
	case line.open != nil:
		return m.valueWords(line.open.Values, "", current)
	case line.onlyArguments || !strings.HasPrefix(current, "-"):
		return m.valueWords(line.verb.Arguments, "", current)
	case joined:
		if f := line.verb.find(flag); f != nil && f.Placeholder != "" {
			return m.valueWords(f.Values, flag+"=", value)
		}
		return Completions{}
	}
	return Completions{Words: line.flagWords()}.matching(current)
}

func (m *Manual) verbWords() (words []Completion) {
	for _, v := range m.Verbs() {
		words = append(words, Completion{v.Name, v.Summary})
	}
	return append(words, Completion{"--help", "show help"}, Completion{"--version", "print the version"})
}

// line is a command line before the word to complete.
type line struct {
	verb          Verb
	given         map[string]bool // names of flags
	open          *Flag           // waits for its value
	onlyArguments bool            // after --
}

func lineUpTo(verb Verb, words []string) line {
	l := line{verb: verb, given: map[string]bool{}}
	for _, word := range words {
		flag, _, joined := strings.Cut(word, "=")
		switch f := verb.find(flag); {
		case l.open != nil:
			l.open = nil
		case l.onlyArguments || f == nil:
			l.onlyArguments = l.onlyArguments || word == "--"
		default:
			l.given[f.Name] = !f.Repeatable
			if f.Placeholder != "" && !joined {
				l.open = f
			}
		}
	}
	return l
}

// find returns the flag that a word on the command line stands for.
func (v Verb) find(word string) *Flag {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
	if name == word {
		return nil
	}
	for _, f := range v.Flags() {
		if name == f.Name || slices.Contains(f.Short, name) || slices.Contains(f.OtherNames, name) {
			return &f
		}
	}
	return nil
}

// flagWords returns the flags that may follow, without those that are other tools'.
func (l line) flagWords() (words []Completion) {
	for _, f := range l.verb.Flags() {
		if l.given[f.Name] {
			continue
		}
		words = append(words, Completion{"--" + f.Name, f.Text})
		for _, short := range f.Short {
			words = append(words, Completion{"-" + short, f.Text})
		}
	}
	slices.SortFunc(words, func(a, b Completion) int { return strings.Compare(a.Word, b.Word) })
	return append(words, Completion{"--help", "show help"})
}

// valueWords completes a value; prefix precedes it in the same word.
func (m *Manual) valueWords(v Values, prefix, value string) Completions {
	found := Completions{Files: v.Files, Folders: v.Folders, Continues: v.Choices.Suffix != ""}
	used := ""
	if comma := strings.LastIndexByte(value, ','); v.Choices.List && comma >= 0 {
		used, value = value[:comma+1], value[comma+1:]
	}
	for _, name := range v.Choices.Names {
		if !slices.Contains(strings.Split(used, ","), name) {
			found.Words = append(found.Words, Completion{prefix + used + name + v.Choices.Suffix, v.Choices.Notes[name]})
		}
	}
	if v.Verbs {
		found.Words = append(found.Words, m.verbWords()...)
	}
	return found.matching(prefix + used + value)
}

// matching keeps the words that begin as the user did.
func (c Completions) matching(begun string) Completions {
	c.Words = slices.DeleteFunc(c.Words, func(w Completion) bool {
		return !strings.HasPrefix(w.Word, begun) || begun == "" && strings.HasPrefix(w.Word, "-")
	})
	return c
}

// Write writes the completions for the scripts: a line with what the shell has to
// do, and a line for each word with its text after a tab.
func (c Completions) Write(w io.Writer) error {
	var b strings.Builder
	for _, mode := range []struct {
		name string
		set  bool
	}{{"files", c.Files}, {"folders", c.Folders}, {"continues", c.Continues}} {
		if mode.set {
			b.WriteString(mode.name + " ")
		}
	}
	b.WriteString("\n")
	for _, word := range c.Words {
		fmt.Fprintf(&b, "%s\t%s\n", word.Word, strings.Join(strings.Fields(word.Text), " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
