// Package clidoc documents a command line: help texts, a Markdown reference, man
// pages, and completion in bash, zsh and fish.
//
// A [Manual] joins the [cli.App], which knows the verbs and their flags, with what
// it does not know: usage lines, examples and the order of things. Every renderer
// works on the [Verb] values that it extracts:
//
//	m := clidoc.Manual{App: app, Pages: pages, Sections: sections, Groups: groups}
//	m.WriteHelp(os.Stdout)
//	m.Verb(command).WriteHelp(os.Stdout)
//
// In the usage text of a flag, a word in backquotes is the placeholder of its value.
// FILE and TRACE are completed with files, DIR with folders. %s stands for the
// values of a [ChoiceFlag].
package clidoc
