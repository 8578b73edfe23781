package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"moontide/replay/bench"
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
	said     *lockedBuffer
}

func launch(commands []*exec.Cmd) (*job, error) {
	j := &job{commands, &lockedBuffer{}}
	for _, cmd := range commands {
		cmd.Stderr = j.said
		if err := cmd.Start(); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// lockedBuffer is what several processes write to.
type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(text)
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

// measured waits until all have ended and returns the largest exit status. Others than
// those of a run that was measured are an error.
func (j *job) measured() (status int, err error) {
	if status = worst(j.wait()); status != 0 && status != 3 {
		err = fmt.Errorf("exit status %d: %s", status, j.said)
	}
	return status, err
}

// run launches ranks whose run is to be measured and waits for them.
func run(commands []*exec.Cmd) (status int, err error) {
	j, err := launch(commands)
	if err != nil {
		return 0, err
	}
	return j.measured()
}

// serve starts a simulated endpoint with empty caches until end is called.
func (w *workshop) serve(flags ...string) (end func() error, err error) {
	endpoint, err := bench.StartEndpoint(exec.Command("moontide", append([]string{"serve", "--listen", "127.0.0.1:0", "--json", "--until-input-ends"}, flags...)...))
	w.url = endpoint.URL
	return endpoint.Close, err
}

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
