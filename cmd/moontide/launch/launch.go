// Package launch writes the input of a scheduler for a distributed run: an sbatch script,
// an mpirun script, or Kubernetes manifests. It submits nothing.
//
//	job := launch.Job{Name: "moontide", Ranks: 4, CPUs: 2, Command: launch.Command{
//		Verb: "replay", Arguments: []string{"trace.jsonl"}, Flags: []string{"--url=http://server:8000", "--part=auto"},
//	}}
//	script, err := job.Slurm()
//
// Arguments reach the processes byte by byte, whatever they contain. Only Kubernetes
// needs valid UTF-8.
package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Job is a run of several processes.
type Job struct {
	Name    string // 1 to 50 lower-case letters, digits and dashes
	Ranks   int    // processes
	CPUs    int    // of each
	Command Command
	// Grace is how long a process may take to end after it was asked to: the longest
	// answer, and time to save the run.
	Grace time.Duration
}

// Command is a command line of moontide.
type Command struct {
	Verb      string
	Arguments []string // other than flags
	Flags     []string // --name=value
}

// with returns the arguments of the command with more flags.
func (c Command) with(flags ...string) []string {
	flags = slices.Concat(c.Flags, flags)
	isFlag := func(arg string) bool { return strings.HasPrefix(arg, "-") }
	if slices.ContainsFunc(c.Arguments, isFlag) {
		return slices.Concat([]string{c.Verb}, flags, []string{"--"}, c.Arguments)
	}
	return slices.Concat([]string{c.Verb}, c.Arguments, flags)
}

const (
	maxName  = 50 // a pod's host name has 63 characters at most, and a number
	maxRanks = 10_000
)

func (j *Job) check() error {
	switch {
	case j.Ranks < 1 || j.Ranks > maxRanks:
		return fmt.Errorf("%d ranks are not between 1 and %d", j.Ranks, maxRanks)
	case j.CPUs < 1:
		return fmt.Errorf("%d CPUs are less than 1", j.CPUs)
	case !isLabel(j.Name) || len(j.Name) > maxName:
		return fmt.Errorf("the name %q is not 1 to %d lower-case letters, digits and dashes that begin with a letter and do not end with a dash", j.Name, maxName)
	}
	for _, arg := range j.Command.with() {
		if strings.ContainsRune(arg, 0) {
			return errors.New("an argument has a NUL byte")
		}
	}
	return nil
}

// isLabel reports whether a name can be that of a Kubernetes object that is part of
// host names.
func isLabel(name string) bool {
	inside := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' }
	return name != "" && name[0] >= 'a' && name[0] <= 'z' && !strings.HasSuffix(name, "-") &&
		strings.IndexFunc(name, func(r rune) bool { return !inside(r) }) < 0
}
