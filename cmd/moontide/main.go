// Command moontide generates, analyzes and replays traces of LLM serving workloads.
//
// Data goes to standard output, messages to standard error. The exit status is 0 on
// success, 1 on failure or an early stop, 2 on misuse, 3 for an INVALID run, 4 for failed
// gates (--slo, --fail-if), and 5 for a run that ended because another part was lost or
// interrupted. Where several apply, the first of 2, 1, 5, 3 and 4 counts.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
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
		prefix := ""
		if len(verb) > 0 {
			prefix = verb[0] + ": "
		}
		std.say("%s%v\nSee %s --help.", prefix, err, strings.Join(append([]string{appName}, verb...), " "))
	default:
		std.say("%s%s", strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted"), remedyOf(err))
	}
	return status
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

// taggedVersion is set by -ldflags "-X main.taggedVersion=v1.2.3" in builds outside a
// Git repository.
var taggedVersion string

// version returns the version recorded by Go: a tag, or a pseudo-version with date and commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "(devel)" { // as go run without Git
		info = &debug.BuildInfo{}
	}
	return cmp.Or(taggedVersion, info.Main.Version, "development build")
}

// moduleLicenses has a line for each module in the binary, and the license texts.
// It is written by go run ./.ci/package -licenses.
//
//go:embed licenses.txt
var moduleLicenses string

const licensesHead = `The owner of moontide has not chosen a license for it yet.

The binary contains these modules under their own licenses, whose texts follow:

`

// Completion scripts: the shell runs the command line so far with a last argument, which
// the library answers.
const (
	bashCompletion = `_moontide() {
  local words=("${COMP_WORDS[@]:0:COMP_CWORD}") current=${COMP_WORDS[COMP_CWORD]}
  local flag=${current#-}
  [[ $current == -* ]] && words+=("-${flag#-}")
  mapfile -t COMPREPLY < <(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$current")
}
complete -o bashdefault -o default -F _moontide moontide
`
	zshCompletion = `#compdef moontide
_moontide() {
  local -a line=(${words[1,CURRENT-1]}) found
  local flag=${words[CURRENT]#-}
  [[ ${words[CURRENT]} == -* ]] && line+=("-${flag#-}")
  found=(${(f)"$(_CLI_ZSH_AUTOCOMPLETE_HACK=1 $line --generate-bash-completion 2>/dev/null)"})
  if (( $#found )); then _describe values found; else _files; fi
}
compdef _moontide moontide
`
)

// printAbout handles the flags of the command itself; without any it prints the verbs.
func printAbout(c *cli.Context, std streams) error {
	var text string
	var err error
	switch shell := c.String("completion"); {
	case c.Bool("licenses"):
		text = licensesHead + moduleLicenses
	case c.Bool("man"):
		text, err = c.App.ToManWithSection(1)
	case shell == "fish":
		text, err = c.App.ToFishCompletion()
	case shell == "bash":
		text = bashCompletion
	case shell == "zsh":
		text = zshCompletion
	case shell != "":
		return misused("--completion %s: want bash, zsh or fish", shell)
	default:
		return cli.ShowAppHelp(c)
	}
	if err != nil {
		return err
	}
	return std.print(func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}
