package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"moontide/replay/evidence"
)

// cost is what a command took.
type cost struct {
	Wall   float64 `json:"wall_s"`
	CPU    float64 `json:"cpu_s"`     // user and system, of the process and its children
	PeakMB float64 `json:"peak_mb"`   // of the process and its children, shared pages counted once
	Others float64 `json:"cpu_other"` // CPU cores used by processes that are not part of the run
	Exit   int     `json:"exit"`
	Error  string  `json:"error,omitempty"` // why there is no result
}

// command is a program to measure. Its output is kept in a file.
type command struct {
	args []string
	env  []string
	log  string
}

// Other work on the machine disturbs all tools alike, and little, if they have
// priority over it. The endpoint has priority over the tools. Both need root;
// without it nice runs them at normal priority.
const (
	clientNice = "-19"
	serverNice = "-20"
)

// prefer gives the session of a process priority over others: Linux applies the
// niceness of processes only within their session if it groups by session.
func prefer(pid int, nice string) {
	os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(nice), 0)
}

const sampleEvery = 200 * time.Millisecond

// measure runs a command. also returns the CPU time of processes that belong to
// the run but not to the command.
func measure(c command, also func() time.Duration) (k cost) {
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", clientNice}, c.args...)...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := os.Create(c.log)
	if err != nil {
		return cost{Error: err.Error()}
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	all, rest, start := machineCPU(), also(), time.Now()
	if err := cmd.Start(); err != nil {
		return cost{Error: err.Error()}
	}
	prefer(cmd.Process.Pid, clientNice)
	ended, peak := make(chan struct{}), make(chan float64)
	go func() { peak <- watchMemory(cmd.Process.Pid, ended) }()
	if err := cmd.Wait(); err != nil {
		k.Error = err.Error()
	}
	if ctx.Err() != nil {
		k.Error = fmt.Sprintf("not done after %v", timeLimit)
	}
	close(ended)
	k.Wall = time.Since(start).Seconds()
	use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	k.PeakMB = max(<-peak, float64(use.Maxrss)/1024)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	k.CPU, k.Exit = cpu.Seconds(), cmd.ProcessState.ExitCode()
	k.Others = max(0, (machineCPU()-all-cpu-(also()-rest)).Seconds()/k.Wall)
	return k
}

func machineCPU() time.Duration {
	return time.Duration(evidence.MachineCPU().Processes) * (time.Second / 100)
}

// watchMemory returns the largest memory of the processes of a session, in MB.
func watchMemory(session int, ended <-chan struct{}) (peak float64) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return peak
		case <-ticker.C:
			sum := 0.0
			stats, _ := filepath.Glob("/proc/[0-9]*/stat")
			for _, path := range stats {
				text, _ := os.ReadFile(path) // none if it has ended
				_, after, _ := bytes.Cut(text, []byte(") "))
				if fields := strings.Fields(string(after)); len(fields) > 3 && fields[3] == strconv.Itoa(session) {
					sum += proportionalMB(filepath.Dir(path))
				}
			}
			peak = max(peak, sum)
		}
	}
}

// proportionalMB returns the memory of a process; pages that several processes
// share count in part for each.
func proportionalMB(process string) float64 {
	text, _ := os.ReadFile(process + "/smaps_rollup")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == "Pss:" {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb / 1024
		}
	}
	return 0
}
