// Command moontide generates, analyzes and replays traces of LLM serving workloads.
//
// Data goes to standard output, messages to standard error. The exit status is 0 on
// success, 1 on failure or an early stop, 2 on misuse, 3 for an INVALID run, 4 for failed
// gates (--slo, --fail-if), and 5 for a run that ended because another part was lost or
// interrupted. Where several apply, the first of 2, 1, 5, 3 and 4 counts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"moontide/replay/cluster"
	"moontide/replay/weblog"
)

func main() {
	os.Exit(execute(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, interrupts()))
}

// interrupts returns the signals that stop a command gently. A broken pipe is an error of
// writing instead.
func interrupts() chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Ignore(syscall.SIGPIPE)
	return signals
}

// streams holds the standard streams of a command.
type streams struct {
	in  io.Reader
	out io.Writer // data
	err io.Writer // messages and progress
}

// Exit statuses.
const (
	exitDone      = 0
	exitFailed    = 1
	exitMisused   = 2
	exitInvalid   = 3
	exitThreshold = 4
	exitPartLost  = 5
)

// usageError is a wrong command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func misused(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errInvalid reports an INVALID run, whose verdict has been printed.
var errInvalid = errors.New("the run is INVALID")

// execute runs a command line and returns its exit status. The first interrupt stops gently,
// the second at once, and a third kills the process.
func execute(args []string, std streams, interrupts chan os.Signal) int {
	stop, end := newStop(interrupts)
	defer end()
	weblog.Divert(func(text string) { std.say("%s", text) })
	std.in = &interruptibleInput{in: std.in, until: stop.gently}
	var verb []string
	if isVerb(args) {
		verb = args[:1]
	}
	app := newApp(std, stop, verb...)
	line, err := parseArgs(app, args)
	if err == nil {
		err = app.RunContext(stop.gently, append([]string{appName}, line...))
	}
	status := statusOf(err)
	switch {
	case err == nil, status == exitInvalid: // the report has the verdict
	case errors.Is(err, syscall.EPIPE): // the reader of the output has ended
	case status == exitMisused:
		std.say("%s\nSee %s --help.", misuse(err, verb), strings.Join(append([]string{appName}, verb...), " "))
	default:
		std.say("%s%s", strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted"), remedyOf(err))
	}
	return status
}

// misuse returns the message about a wrong command line, with the verb that was typed.
func misuse(err error, verb []string) string {
	text := err.Error()
	if len(verb) == 0 {
		return text
	}
	for _, v := range verbs() {
		text = strings.TrimPrefix(text, v.name+": ")
	}
	return verb[0] + ": " + text
}

// bySeverity lists the exit statuses of errors in order of precedence.
var bySeverity = []int{exitMisused, exitFailed, exitPartLost, exitInvalid, exitThreshold}

// statusOf returns the exit status of an error, of joined errors the first in [bySeverity].
func statusOf(err error) int {
	var misuse usageError
	var gates gateError
	var ended *cluster.EndedError
	joined, several := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &misuse):
		return exitMisused
	case several:
		rank := len(bySeverity) - 1
		for _, e := range joined.Unwrap() {
			rank = min(rank, slices.Index(bySeverity, statusOf(e)))
		}
		return bySeverity[rank]
	case errors.As(err, &ended) && ended.Resumable:
		return exitPartLost
	case errors.Is(err, errInvalid):
		return exitInvalid
	case errors.As(err, &gates):
		return exitThreshold
	}
	return exitFailed
}

// stop holds the contexts that interrupts cancel.
type stop struct {
	gently context.Context // first interrupt: start nothing new, finish requests in flight
	now    context.Context // second interrupt
}

func newStop(interrupts chan os.Signal) (stop, func()) {
	now, endNow := context.WithCancel(context.Background())
	gently, endGently := context.WithCancel(now)
	go func() {
		for _, end := range []func(){endGently, endNow} {
			select {
			case <-interrupts:
				end()
			case <-now.Done():
				return
			}
		}
		signal.Stop(interrupts)
	}()
	return stop{gently, now}, endNow
}

// verb creates a command when it is needed.
type verb struct {
	name    string
	command func(streams, stop) *cli.Command
}

func verbs() []verb {
	return []verb{
		{"replay", replayCommand},
		{"bench", benchCommand},
		{"report", reportCommand},
		{"compare", compareCommand},
		{"calibrate", calibrateCommand},
		{"analyze", analyzeCommand},
		{"check", checkCommand},
		{"convert", convertCommand},
		{"synth", synthCommand},
		{"fit", fitCommand},
		{"capture", captureCommand},
		{"fit-engine", fitEngineCommand},
		{"simulate", simulateCommand},
		{"serve", serveCommand},
	}
}

// newApp returns the command with all verbs, or only those named: creating all flags takes
// longer than analyzing a small trace.
func newApp(std streams, stop stop, only ...string) *cli.App {
	misuse := func(c *cli.Context, err error, _ bool) error { return usageError{err} }
	app := &cli.App{
		Name:                 appName,
		Usage:                "generate, analyze and replay traces of LLM serving workloads",
		Version:              version(),
		Reader:               std.in,
		Writer:               std.out,
		ErrWriter:            std.err,
		EnableBashCompletion: true,
		HideHelpCommand:      true,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "licenses", Usage: "print the licenses of the modules in this binary"},
			&cli.BoolFlag{Name: "man", Usage: "print the man page"},
			&cli.StringFlag{Name: "completion", Usage: "print the completion script of a `SHELL`: bash, zsh or fish"},
		},
		Action:         func(c *cli.Context) error { return printAbout(c, std) },
		OnUsageError:   misuse,
		ExitErrHandler: func(*cli.Context, error) {}, // execute handles errors
	}
	for _, v := range verbs() {
		if len(only) == 0 || slices.Contains(only, v.name) {
			c := v.command(std, stop)
			c.Name, c.Category, c.HideHelpCommand, c.OnUsageError = v.name, verbPages[v.name].Section, true, misuse
			c.Before = func(c *cli.Context) error { return refuseOverwrite(c, std) }
			app.Commands = append(app.Commands, c)
		}
	}
	return app
}

// isVerb reports whether a command line starts with a verb.
func isVerb(args []string) bool {
	return len(args) > 0 && slices.ContainsFunc(verbs(), func(v verb) bool { return v.name == args[0] })
}
