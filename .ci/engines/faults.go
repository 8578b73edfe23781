package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"moontide/replay/runfile"
)

// part starts a replay and, 2.5 s after its first request, has act end it.
func (s *session) part(rows []row, act func(pid int)) (*outcome, error) {
	cmd, dir, err := s.prepare("run", rows, "--server-metrics", s.server.url)
	if err != nil {
		return nil, err
	}
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		for range 600 {
			if info, err := os.Stat(filepath.Join(dir, runfile.SentFile)); err == nil && info.Size() > 0 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(2500 * time.Millisecond)
		act(cmd.Process.Pid)
	}()
	o, err := s.finish(cmd, dir)
	<-acted
	return o, err
}

// interruptedRows are those of runs that are interrupted, five a second.
var interruptedRows = shared(30, 200)

// resumed interrupts a run, resumes it after a pause, and checks that every row was sent
// once.
func (s *session) resumed(pause func() error) (*outcome, error) {
	first, err := s.part(interruptedRows, func(pid int) { syscall.Kill(pid, syscall.SIGINT) })
	if err != nil {
		return nil, err
	}
	sent, n := len(first.records), len(interruptedRows)
	s.law("exit status of the interrupted run, and rows sent", "1, some of them", fmt.Sprint(first.exit, ", ", sent), first.exit == 1 && sent > 0 && sent < n)
	if err := pause(); err != nil {
		return nil, err
	}
	o, err := s.finish(s.command(first.dir+".jsonl", "--resume", first.dir), first.dir)
	if err != nil {
		return nil, err
	}
	var seen []int
	for _, r := range o.records {
		seen = append(seen, r.Row)
	}
	once := len(slices.Compact(slices.Clone(seen)))
	s.equal("rows that were sent, and different ones", fmt.Sprint(n, " and ", n), fmt.Sprint(len(seen), " and ", once))
	completed(n)(s, o)
	return o, nil
}

// interruptAndResume checks that a run of two parts is equal to one run.
func interruptAndResume(s *session) error {
	o, err := s.resumed(func() error { return nil })
	if err != nil {
		return err
	}
	trusted(s, o)
	if s.engine.blockOf > 1 { // one slot answers requests in another order than they come
		s.check.rows = interruptedRows
		counts(0, 0, 0)(s, o)
	}
	return nil
}

// restartBeforeResume checks that the loss of the cache has its cause.
func restartBeforeResume(s *session) error {
	o, err := s.resumed(s.restart)
	if err != nil {
		return err
	}
	s.says("the verdict says that the server restarted", o.evidence("server_restart"), "SUSPECT", "restarted")
	return nil
}

// restartBetweenRuns checks that a second run of the same prompts finds a warm cache
// or, after a restart, a cold one, and that moontide tells them apart.
func restartBetweenRuns(s *session) error {
	var runs []*outcome
	for _, name := range []string{"cold", "warm", "restarted"} {
		if name == "restarted" {
			if err := s.restart(); err != nil {
				return err
			}
		}
		o, err := s.replay(name, shared(30, 0), s.flags("--salt again "+oneByOne)...)
		if err != nil {
			return err
		}
		runs = append(runs, o)
	}
	cold, warm, restarted := runs[0], runs[1], runs[2]
	if s.engine.blockOf > 1 {
		s.says("the verdict of a second run", warm.evidence("warm_cache"), "SUSPECT", "no request of this run can have cached")
	}
	trusted(s, restarted)
	s.equal("cached tokens after a restart are those of the first run", cold.Cached.Value, restarted.Cached.Value)
	s.equal("warm cache found after a restart", false, strings.HasPrefix(restarted.evidence("warm_cache"), "SUSPECT"))
	return nil
}

// killedMidRun checks that a run whose server dies is INVALID, and why.
func killedMidRun(s *session) error {
	o, err := s.part(equal(40, 200, 40, 200), func(int) { s.server.kill() })
	if err != nil {
		return err
	}
	s.equal("exit status and verdict", "3, INVALID", fmt.Sprint(o.exit, ", ", o.Verdict.Level))
	s.law("failed requests", "more than 5 %", fmt.Sprint(o.Failed, " of ", len(o.records)), 20*o.Failed > len(o.records))
	s.says("the verdict names the cause", o.evidence("failed"), "INVALID", "connect")
	return nil
}
