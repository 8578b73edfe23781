package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// pageMode is the value of asMoontide with which the test binary, under the name
// moontide or go, executes the commands of pages and records them.
const pageMode = "page"

// recordOfPage, in the environment, is the file that records a page's commands.
const recordOfPage = "MOONTIDE_TEST_RECORD"

// executed is a command of a page and its exit status.
type executed struct {
	Args   []string
	Status int
}

// asPageCommand executes the command line that a page's shell asks for, and
// returns the exit status for the shell: a measured run that is INVALID does not
// end a script, because a busy machine may make it so.
func asPageCommand() int {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "go" {
		line := "go " + strings.Join(args, " ")
		switch {
		case line == testCommand, line == installCommand:
			return exitDone
		case !strings.HasPrefix(line, "go run ./cmd/moontide "):
			fmt.Fprintf(os.Stderr, "%s: put commands other than moontide's in a bash block, which is not executed\n", line)
			return exitMisused
		}
		args = args[2:]
	}
	out := &pageOutput{File: os.Stdout}
	done := executed{args, execute(args, streams{os.Stdin, out, os.Stderr}, interrupts())}
	if out.closed && done.Status == exitFailed { // as in "| head"
		done.Status = exitDone
	}
	record, err := os.OpenFile(os.Getenv(recordOfPage), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		err = json.NewEncoder(record).Encode(done)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	if done.busy() {
		return exitDone
	}
	return done.Status
}

// pageOutput remembers whether the reader of standard output ended early.
type pageOutput struct {
	*os.File
	closed bool
}

func (o *pageOutput) Write(data []byte) (int, error) {
	n, err := o.File.Write(data)
	o.closed = o.closed || errors.Is(err, syscall.EPIPE)
	return n, err
}

// busy reports whether the command has measured, and a busy machine may be why
// the result is INVALID.
func (e executed) busy() bool {
	return e.Status == exitInvalid && slices.Contains([]string{"replay", "bench", "calibrate", "report", "compare"}, e.verb())
}

func (e executed) verb() string { return append(e.Args, "")[0] }
