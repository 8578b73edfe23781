package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/report/doc"
	"moontide/analyze/slo"
	"moontide/replay/runfile"
	"moontide/replay/secret"
	"moontide/replay/weblog"
	"moontide/trace/atomicfile"
	"moontide/trace/format"
)

// say prints a message and escapes control characters in it.
func (std streams) say(format string, args ...any) {
	fmt.Fprintf(std.err, "moontide: %s\n", weblog.Escape(secret.Message(fmt.Sprintf(format, args...))))
}

// sayAll prints a message for each text.
func (std streams) sayAll(format string, texts []string) {
	for _, text := range texts {
		std.say(format, text)
	}
}

// print prints a report. It ignores a reader that ends early, as in "| head".
func (std streams) print(write func(io.Writer) error) error {
	if err := write(std.out); !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return nil
}

// printText prints a report as text for the terminal.
func (std streams) printText(d *doc.Document) error {
	return std.print(func(w io.Writer) error { return terminalOf(w).Write(w, d) })
}

const outputFlag = "output"

// formsFlag is --output FORM[=FILE] with the forms of a verb.
type formsFlag struct {
	cli.GenericFlag
	forms   choiceSet
	aliases []string // unknown to the library, which would set the value again for each
}

func (f *formsFlag) Names() []string { return append([]string{f.Name}, f.aliases...) }
func (f *formsFlag) String() string  { return cli.FlagStringer(f) }

// outputFlags returns the flags for the forms of a verb's results: --output for all of them,
// and --json and --html.
func outputFlags(forms choiceSet) (flags []cli.Flag) {
	forms.Names = append([]string{"text"}, forms.Names...)
	all := &formsFlag{cli.GenericFlag{
		Name: outputFlag, Category: inOutput, Value: new(texts),
		Usage: "`FORM[=FILE]`: print the results in another form, or with =FILE also write them to FILE; repeatable. FORM is " + forms.String(),
	}, forms, []string{"o"}}
	for _, form := range forms.Names {
		switch form {
		case "json":
			flags = append(flags, &cli.BoolFlag{Name: form, Category: inOutput, Usage: "print JSON instead of text"})
		case "html":
			flags = append(flags, &cli.StringFlag{Name: form, Category: inOutput, Usage: "also write a self-contained page with figures to `FILE`; - is standard output"})
		case engineForm:
			all.aliases = nil // -o is the engine file
		}
	}
	return append(flags, all)
}

// dataFlag returns the flag for the file that a verb makes.
func dataFlag(otherwise, usage string) cli.Flag {
	return &cli.StringFlag{Name: outFlag.Name, Aliases: []string{"o", outputFlag}, Category: inOutput, Value: otherwise, Usage: usage}
}

// formsOf returns the forms of a verb's results.
func formsOf(verb *cli.Command) choiceSet {
	if f, ok := findFlag(verb.Flags, outputFlag).(*formsFlag); ok {
		return f.forms
	}
	return choiceSet{}
}

// output is a form of the results, and where it goes.
type output struct {
	flag string // that asks for it, such as "--output csv"
	form string
	path string // "" is standard output
}

// outputs are the forms of the results that a command line asks for.
type outputs []output

// outputsOf parses the flags for forms of results. Standard output and each file hold one
// form.
func outputsOf(c *cli.Context) (all outputs, err error) {
	forms := formsOf(c.Command)
	var texts []string
	if len(forms.Names) > 0 {
		texts = textsOf(c, outputFlag)
	}
	if c.Bool("json") {
		all = append(all, output{"--json", "json", ""})
	}
	if c.IsSet("html") {
		all = append(all, output{"--html", "html", c.String("html")})
		if c.String("html") == "" {
			return nil, misused("--html names no file")
		}
	}
	for _, text := range texts {
		form, path, toFile := strings.Cut(text, "=")
		if form, err = forms.Resolve(form); err != nil {
			return nil, misused("--output %w, each also as FORM=FILE", err)
		}
		if toFile && path == "" {
			return nil, misused("--output %s= names no file", form)
		}
		all = append(all, output{"--output " + form, form, path})
	}
	for i, o := range all {
		if o.path == "-" {
			all[i].path = ""
		}
		for _, other := range all[:i] {
			switch {
			case all[i].path == "" && other.path == "":
				return nil, misused("%s and %s: only one can be standard output", other.flag, o.flag)
			case all[i].path != "" && other.path != "" && absolutePath(other.path) == absolutePath(o.path):
				return nil, misused("%s and %s name the same file: %s", other.flag, o.flag, o.path)
			}
		}
	}
	return all, nil
}

// has reports whether the results have one of some forms.
func (all outputs) has(forms ...string) (flag string, ok bool) {
	for _, o := range all {
		if slices.Contains(forms, o.form) {
			return o.flag, true
		}
	}
	return "", false
}

// results are the results of a verb: a document, and forms besides those of a document.
type results struct {
	document func() *doc.Document
	forms    map[string]func(io.Writer) error
}

// resultsOf returns the results of a report.
func resultsOf(r interface {
	Document() *doc.Document
	JSON(io.Writer) error
}) results {
	forms := map[string]func(io.Writer) error{"json": r.JSON}
	if suite, ok := r.(interface{ JUnit(io.Writer) error }); ok {
		forms["junit"] = suite.JUnit
	}
	return results{r.Document, forms}
}

// form writes the results in a form.
func (r results) form(w io.Writer, form string) error {
	if write := r.forms[form]; write != nil {
		return write(w)
	}
	switch d := r.document(); form {
	case "csv":
		return d.WriteCSV(w)
	case "markdown":
		return d.WriteMarkdown(w)
	case "html":
		return d.WriteHTML(w)
	case "png":
		return d.WritePNG(w)
	default:
		return terminalOf(w).Write(w, d)
	}
}

// show writes the results to files, and prints them, as text unless a form was asked for.
func (all outputs) show(std streams, r results) error {
	printed := "text"
	var failed []error
	for _, o := range all {
		if o.path == "" {
			printed = o.form
			continue
		}
		failed = append(failed, writeFile(std, o.path, func(w io.Writer) error { return r.form(w, o.form) }))
	}
	return errors.Join(append(failed, std.print(func(w io.Writer) error { return r.form(w, printed) }))...)
}

// absolutePath returns the absolute path, or the path if that is unknown.
func absolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
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

// writeTrace writes the rows of a trace to the file of --out, or to standard output for -. It
// leaves no file on failure. report is called before the outcome is reported.
func writeTrace(c *cli.Context, std streams, write func(*format.Writer) (rows int, err error), report func(rows int, err error)) error {
	path := c.String(outFlag.Name)
	open := func() (*format.Writer, error) { return format.NewWriter(std.out, "") }
	if path != "-" {
		open = func() (*format.Writer, error) { return format.Create(path) }
	}
	w, err := open()
	if err != nil {
		return err
	}
	rows, err := write(w)
	switch {
	case err == nil:
		err = w.Close()
	case path == "-":
		err = errors.Join(err, w.Close())
	default:
		w.Discard()
	}
	report(rows, err)
	if err == nil && path != "-" {
		std.say("%s written to %s", doc.Count(rows, "request"), path)
	}
	return err
}

// refuseOverwrite returns an error if a command would overwrite one of its inputs, also
// through a link or as standard output. Outputs are the files of the flags in the OUTPUT
// group, inputs all other files on the command line and the files of a run's folder.
func refuseOverwrite(c *cli.Context, std streams) error {
	inputs := inputFiles(c)
	refuse := func(output os.FileInfo, name string) error {
		for path, input := range inputs {
			if output.Mode().IsRegular() && os.SameFile(input, output) {
				return misused("%s would overwrite its input %s", name, path)
			}
		}
		return nil
	}
	forms, err := outputsOf(c)
	if err != nil {
		return err
	}
	toFile := false
	hasKey := slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "key" })
	for _, o := range append(forms, pathFlags(c, true)...) {
		if o.path == "" || o.path == "-" {
			continue
		}
		toFile = true
		if info, err := os.Stat(o.path); err == nil {
			if err := refuse(info, o.flag+" "+o.path); err != nil {
				return err
			}
			if isRecording(o.path) {
				return misused("%s %s would overwrite the record of a run", o.flag, o.path)
			}
		}
		if hasKey && absolutePath(o.path) == absolutePath(keyFile(c)) {
			return misused("%s %s is the file of the key", o.flag, o.path)
		}
		if o.form != "" { // it is no folder
			if err := atomicfile.Check(o.path); err != nil {
				return misused("%s: %w", o.flag, err)
			}
		}
	}
	if out, ok := std.out.(*os.File); ok && !toFile {
		if info, err := out.Stat(); err == nil {
			return refuse(info, "standard output")
		}
	}
	return nil
}

// pathFlags returns the values of flags that may name a file, in the OUTPUT group or not.
// Those that name no folder have a form.
func pathFlags(c *cli.Context, inOutputGroup bool) (paths outputs) {
	given := c.LocalFlagNames()
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if (categoryOf(f) == inOutput) != inOutputGroup || !slices.Contains(given, name) {
			continue
		}
		o := output{flag: "--" + name, path: c.String(name)}
		switch f := f.(type) {
		case *cli.StringFlag:
			if strings.Contains(f.Usage, "`FILE`") {
				o.form = "file"
			}
			paths = append(paths, o)
		case *choiceFlag:
			if f.Choices.Open {
				paths = append(paths, o)
			}
		}
	}
	return paths
}

// inputFiles returns the existing input files of the command line, by path, with those in
// folders.
func inputFiles(c *cli.Context) map[string]os.FileInfo {
	var names []string
	for _, arg := range c.Args().Slice() {
		names = append(names, arg)
		_, list, _ := strings.Cut(arg, "=") // LABEL=DIR,DIR
		names = append(names, strings.Split(list, ",")...)
	}
	for _, o := range pathFlags(c, false) {
		names = append(names, o.path)
	}
	files := map[string]os.FileInfo{}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		if !info.IsDir() {
			files[name] = info
			continue
		}
		entries, _ := os.ReadDir(name) // an unreadable folder is no input
		for _, entry := range entries {
			if reports := []string{".html", ".png"}; slices.Contains(reports, filepath.Ext(entry.Name())) {
				continue
			}
			path := filepath.Join(name, entry.Name())
			if info, err := os.Stat(path); err == nil {
				files[path] = info
			}
		}
	}
	return files
}

// isRecording reports whether an existing file is part of the record of a run.
func isRecording(path string) bool {
	records := []string{runfile.RunFile, runfile.RequestsFile, runfile.SamplesFile, runfile.GapsFile, runfile.SentFile}
	_, err := os.Stat(filepath.Join(filepath.Dir(path), runfile.RunFile))
	return err == nil && slices.Contains(records, filepath.Base(path))
}

// prints reports whether a form other than text goes to standard output.
func (all outputs) prints() bool {
	return slices.ContainsFunc(all, func(o output) bool { return o.path == "" })
}

// gateHelp explains the conditions in the help of every verb with gates.
const gateHelp = "Gates: --slo CONDITIONS must hold, --fail-if CONDITIONS must not; if a gate fails, the exit status is " +
	"4. A condition is a metric, one of < <= > >=, and a limit: p99_ttft<2s, " +
	"p99_ttft_ms<2000, failed<1%, output_throughput>1000. A condition fails if its metric was not " +
	"measured, or is a percentile with fewer than 5 values beyond it: p99 needs 500 requests."

var errNoObjectives = misused("goodput needs --goodput OBJECTIVES, such as ttft:2000,tpot:25")

// gateError reports gates that did not pass.
type gateError struct{ error }

// outcomeOf returns the error of reported runs: that of an INVALID run, else that of failed
// gates.
func outcomeOf(runs report.Runs) error {
	if slices.ContainsFunc(runs, func(r report.Run) bool { return r.Result.Verdict.Level == measure.Invalid }) {
		return errInvalid
	}
	var failed []error
	for _, r := range runs {
		name := ""
		if len(runs) > 1 {
			name = r.Name + ": "
		}
		failed = append(failed, failedGates(name, r.Judgements()))
	}
	return errors.Join(failed...)
}

// failedGates returns the error of gates, nil if all passed.
func failedGates(prefix string, all []slo.Judgement) error {
	var failed []error
	for _, j := range slo.Failed(all) {
		failed = append(failed, gateError{fmt.Errorf("failed: %s%s", prefix, j)})
	}
	return errors.Join(failed...)
}
