package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/replay/secret"
	"moontide/replay/weblog"
	"moontide/trace/atomicfile"
)

// say prints a message and escapes control characters in it.
func (std streams) say(format string, args ...any) {
	fmt.Fprintf(std.err, "moontide: %s\n", weblog.Escape(secret.Message(fmt.Sprintf(format, args...))))
}

// chosenForm returns the boolean flag that selects the output form, "" for text.
func chosenForm(c *cli.Context, flags ...string) (form string, err error) {
	for _, flag := range flags {
		switch {
		case !c.Bool(flag):
		case form != "":
			return "", misused("%s: --%s and --%s: choose one", c.Command.Name, form, flag)
		default:
			form = flag
		}
	}
	return form, nil
}

// print prints a report. It ignores a reader that ends early, as in "| head".
func (std streams) print(write func(io.Writer) error) error {
	if err := write(std.out); !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return nil
}

// outputFlags returns the flags for output forms and output files. phrases describes the
// content of a form for one verb, by flag.
func outputFlags(names string, phrases map[string]string) (flags []cli.Flag) {
	for _, f := range []struct{ name, usage string }{
		{"json", "print JSON instead of text"},
		{"markdown", "print Markdown instead of text, such as for a CI summary"},
		{"csv", "print CSV instead of text"},
		{"datagen", "print the DATASET ANALYSIS block of Dynamo's data generator"},
		{"html", "also write a self-contained page with figures to `FILE`; - is standard output"},
		{"png", "also write the figures to `FILE`; - is standard output"},
		{"junit", "also write verdict and gates as JUnit XML to `FILE`; - is standard output"},
	} {
		f.usage += phrases[f.name]
		switch {
		case !slices.Contains(words(names), f.name):
		case strings.Contains(f.usage, "`"):
			flags = append(flags, &cli.StringFlag{Name: f.name, Category: inOutput, Usage: f.usage})
		default:
			flags = append(flags, &cli.BoolFlag{Name: f.name, Category: inOutput, Usage: f.usage})
		}
	}
	return flags
}

// output configures the output of results: files, and standard output in a form, "" for
// text.
type output struct {
	form  string
	files outputFiles
}

// outputOf parses the flags for forms and files.
func outputOf(c *cli.Context, forms []string, files ...string) (o output, err error) {
	if o.form, err = chosenForm(c, forms...); err == nil {
		o.files, err = filesOf(c, o.form, files...)
	}
	return o, err
}

// results are the results of a verb.
type results struct {
	document func() *doc.Document
	forms    map[string]func(io.Writer) error // besides those of a document
	files    map[string]func(io.Writer) error // by flag, besides those of a document
}

// resultsOf returns the document and the JSON of a report.
func resultsOf(r interface {
	Document() *doc.Document
	JSON(io.Writer) error
}) results {
	return results{document: r.Document, forms: map[string]func(io.Writer) error{"json": r.JSON}, files: map[string]func(io.Writer) error{}}
}

// show writes the files and prints the results, unless a file is standard output.
func (o *output) show(std streams, r results) error {
	printed, err := o.write(std, r)
	if err != nil || printed {
		return err
	}
	return o.print(std, r)
}

// print prints the results.
func (o *output) print(std streams, r results) error {
	if own, ok := r.forms[o.form]; ok {
		return std.print(own)
	}
	switch d := r.document(); o.form {
	case "csv":
		return std.print(d.WriteCSV)
	case "markdown":
		return std.print(d.WriteMarkdown)
	default:
		return std.printText(d)
	}
}

// printText prints a report as text for the terminal.
func (std streams) printText(d *doc.Document) error {
	return std.print(func(w io.Writer) error { return terminalOf(w).Write(w, d) })
}

// outputFiles holds the files to write, by flag, in the order of the flags.
type outputFiles []struct{ flag, path string }

// filesOf parses flags that name files, which must be different. form is the printed form;
// a file named - replaces only text.
func filesOf(c *cli.Context, form string, flags ...string) (files outputFiles, err error) {
	for _, flag := range flags {
		path := c.String(flag)
		switch {
		case !c.IsSet(flag):
			continue
		case path == "":
			return nil, misused("%s: --%s names no file", c.Command.Name, flag)
		case path == "-" && form != "":
			return nil, misused("%s: --%s - and --%s: only one can be standard output", c.Command.Name, flag, form)
		}
		for _, f := range files {
			if f.path == path || path != "-" && f.path != "-" && absolutePath(f.path) == absolutePath(path) {
				return nil, misused("%s: --%s and --%s name the same file: %s", c.Command.Name, f.flag, flag, path)
			}
		}
		files = append(files, struct{ flag, path string }{flag, path})
	}
	return files, nil
}

// absolutePath returns the absolute path, or the path if that is unknown.
func absolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// path returns the file that a flag names, or "" if it was not given.
func (o *output) path(flag string) string {
	for _, f := range o.files {
		if f.flag == flag {
			return f.path
		}
	}
	return ""
}

// write writes the files of the results. printed means that one of them is standard output.
func (o *output) write(std streams, r results) (printed bool, err error) {
	for _, f := range o.files {
		draw := r.files[f.flag]
		switch f.flag {
		case "html":
			draw = func(w io.Writer) error { return r.document().WriteHTML(w) }
		case "png":
			draw = func(w io.Writer) error { return r.document().WritePNG(w) }
		}
		if draw != nil {
			if err := writeFile(std, f.path, draw); err != nil {
				return printed, err
			}
		}
		printed = printed || f.path == "-"
	}
	return printed, nil
}

// writeFile writes a file atomically, or standard output for -.
func writeFile(std streams, path string, write func(io.Writer) error) error {
	if path == "-" {
		return std.print(write)
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return fmt.Errorf("writing %w", err)
	}
	if err := write(f); err != nil { // the error names the file
		f.Discard()
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %w", err)
	}
	return nil
}
