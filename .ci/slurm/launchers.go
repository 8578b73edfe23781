package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// launcher starts the ranks of a run.
type launcher struct {
	name     string
	commands func(ranks int, args []string) []*exec.Cmd
	// rankVariable is in the environment of a rank.
	rankVariable string
}

var launchers = []launcher{
	{"srun", func(ranks int, args []string) []*exec.Cmd {
		n := strconv.Itoa(ranks)
		return []*exec.Cmd{exec.Command("srun", append([]string{"-N" + n, "-n" + n, "moontide"}, args...)...)}
	}, "SLURM_PROCID"},
	{"mpirun", func(ranks int, args []string) []*exec.Cmd {
		return []*exec.Cmd{exec.Command("mpirun", append([]string{"--oversubscribe", "-n", strconv.Itoa(ranks), "moontide"}, args...)...)}
	}, "OMPI_COMM_WORLD_RANK"},
	{"pods", pods, "JOB_COMPLETION_INDEX"},
}

// script is what launch mpi prints, run by bash.
var script = launcher{"launch mpi", func(ranks int, args []string) []*exec.Cmd {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--part" || arg == "auto" }) // launch adds them
	launch := append([]string{"-c", `moontide launch mpi --ranks "$0" -- "$@" 2>/dev/null | bash -s -- --oversubscribe`, strconv.Itoa(ranks)}, args...)
	return []*exec.Cmd{exec.Command("bash", launch...)}
}, "OMPI_COMM_WORLD_RANK"}

// pods returns commands with the environment of the pods of an Indexed Job. They share a
// volume, so that they find part 1 without its name.
func pods(ranks int, args []string) (all []*exec.Cmd) {
	for i := range ranks {
		cmd := exec.Command("moontide", args...)
		cmd.Env = append(os.Environ(), fmt.Sprint("JOB_COMPLETION_INDEX=", i), fmt.Sprint("MOONTIDE_PARTS=", ranks), fmt.Sprint("HOSTNAME=load-", i))
		all = append(all, cmd)
	}
	return all
}

// job is a started run.
type job struct {
	commands []*exec.Cmd
	said     *bytes.Buffer
}

func launch(commands []*exec.Cmd) (*job, error) {
	j := &job{commands, &bytes.Buffer{}}
	said := &lockedWriter{b: j.said, lock: make(chan struct{}, 1)}
	for _, cmd := range commands {
		cmd.Stderr = said
		if err := cmd.Start(); err != nil {
			return nil, err
		}
	}
	return j, nil
}

type lockedWriter struct {
	b    *bytes.Buffer
	lock chan struct{}
}

func (w *lockedWriter) Write(text []byte) (int, error) {
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	return w.b.Write(text)
}

// wait waits for all commands and returns the exit status of each.
func (j *job) wait() (statuses []int) {
	for _, cmd := range j.commands {
		cmd.Wait()
		statuses = append(statuses, cmd.ProcessState.ExitCode())
	}
	return statuses
}

// worst returns the largest exit status, after all have ended. -1 is a signal.
func worst(statuses []int) (most int) {
	for _, s := range statuses {
		if s < 0 {
			s = 128
		}
		most = max(most, s)
	}
	return most
}

// run launches ranks and waits for them.
func run(commands []*exec.Cmd) (said string, status int, err error) {
	j, err := launch(commands)
	if err != nil {
		return "", 0, err
	}
	status = worst(j.wait())
	return j.said.String(), status, nil
}

// serve starts a simulated endpoint with empty caches until end is called.
func (w *workshop) serve(flags ...string) (end func(), err error) {
	cmd := exec.Command("moontide", append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	talk, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end = func() { cmd.Process.Signal(os.Interrupt); cmd.Wait() }
	lines := bufio.NewReader(talk)
	line, err := lines.ReadString('\n')
	_, rest, _ := strings.Cut(line, " on ")
	url, _, found := strings.Cut(rest, ",")
	if err != nil || !found {
		end()
		return nil, fmt.Errorf("serve says %q: %v", line, err)
	}
	go lines.WriteTo(discard{})
	w.url = url
	return end, nil
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// findRank returns the process of a rank of a run, which names its folder.
func findRank(variable string, rank int, dir string) (*os.Process, error) {
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			program, _, _ := bytes.Cut(line, []byte{0})
			if bytes.HasSuffix(program, []byte("moontide")) && bytes.Contains(line, []byte(dir)) && bytes.Contains(append([]byte{0}, env...), fmt.Appendf(nil, "\x00%s=%d\x00", variable, rank)) {
				return os.FindProcess(pid)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil, errors.New("the rank was not found")
}
