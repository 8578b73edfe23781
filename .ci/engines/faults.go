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

// part starts a replay at a rate of 5 requests a second and lets it run for a while.
// Then act happens, which may end the run.
func (s *session) part(name string, rows []row, after time.Duration, act func(pid int), flags ...string) (*outcome, error) {
	dir, path, err := s.written(name, rows)
	if err != nil {
		return nil, err
	}
	args := []string{path, "--url", s.server.url, "--block-size", fmt.Sprint(traceBlock), "--salt", s.check, "--server-metrics", s.server.url}
	cmd := s.command(dir, append(args, flags...)...)
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		for range 600 { // until the first request is sent
			if info, err := os.Stat(filepath.Join(dir, runfile.SentFile)); err == nil && info.Size() > 0 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(after)
		act(cmd.Process.Pid)
	}()
	o, err := s.finish(cmd, dir)
	<-acted
	return o, err
}

func interrupt(pid int) { syscall.Kill(pid, syscall.SIGINT) }

// resume continues an interrupted run.
func (s *session) resume(o *outcome) (*outcome, error) {
	cmd := s.command("", o.dir+".jsonl", "--url", s.server.url, "--resume", o.dir)
	cmd.Args = cmd.Args[:len(cmd.Args)-2] // without --out
	return s.finish(cmd, o.dir)
}

// complete checks that every row was sent once.
func (s *session) complete(o *outcome, n int) {
	var seen []int
	for _, r := range o.records {
		seen = append(seen, r.Row)
	}
	once := len(slices.Compact(slices.Clone(seen)))
	s.equal("rows that were sent, and different ones", fmt.Sprint(n, " and ", n), fmt.Sprint(len(seen), " and ", once))
	s.equal("completed", n, o.summary.Completed)
}

const interruptedAfter = 2500 * time.Millisecond

// interrupted replays rows until an interrupt.
func (s *session) interrupted(rows []row) (*outcome, error) {
	o, err := s.part("run", rows, interruptedAfter, interrupt)
	if err != nil {
		return nil, err
	}
	return o, o.ran()
}

// interruptAndResume checks that a run of two parts is equal to one run.
func interruptAndResume(s *session) error {
	rows := shared(30, 200)
	first, err := s.interrupted(rows)
	if err != nil {
		return err
	}
	s.equal("exit status of the interrupted run", 1, first.exit)
	s.law("rows sent before the interrupt", "some, not all", fmt.Sprint(len(first.records)), len(first.records) > 0 && len(first.records) < len(rows))
	o, err := s.resume(first)
	if err != nil {
		return err
	}
	s.trusted(o)
	s.complete(o, len(rows))
	if s.engine.blockOf > 1 { // one slot answers requests in another order than they come
		s.counts(o, prompts(rows, 0, 0))
	}
	return nil
}

// restartBeforeResume checks that the loss of the cache has its cause.
func restartBeforeResume(s *session) error {
	rows := shared(30, 200)
	first, err := s.interrupted(rows)
	if err != nil {
		return err
	}
	if err := s.restart(); err != nil {
		return err
	}
	o, err := s.resume(first)
	if err != nil {
		return err
	}
	s.complete(o, len(rows))
	s.says("the verdict says that the server restarted", o.evidence("server_restart"), "SUSPECT", "restarted")
	return nil
}

// restartBetweenRuns checks that a second run of the same prompts finds a warm cache
// or, after a restart, a cold one, and that moontide tells them apart.
func restartBetweenRuns(s *session) error {
	rows := shared(30, 0)
	flags := append([]string{"--salt", "again"}, oneByOne...)
	cold, err := s.replay("cold", rows, flags...)
	if err != nil {
		return err
	}
	if err := cold.ran(); err != nil {
		return err
	}
	warm, err := s.replay("warm", rows, flags...)
	if err != nil {
		return err
	}
	if s.engine.blockOf > 1 {
		s.says("the verdict of a second run", warm.evidence("warm_cache"), "SUSPECT", "no request of this run can have cached")
	}
	if err := s.restart(); err != nil {
		return err
	}
	again, err := s.replay("restarted", rows, flags...)
	if err != nil {
		return err
	}
	s.trusted(again)
	s.equal("cached tokens after a restart are those of the first run", cold.summary.Moontide.Cached, again.summary.Moontide.Cached)
	s.law("warm cache found after a restart", "no", yes(again.evidence("warm_cache") != "" && !strings.HasPrefix(again.evidence("warm_cache"), "VALID")),
		!strings.HasPrefix(again.evidence("warm_cache"), "SUSPECT"))
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// killedMidRun checks that a run whose server dies is INVALID, and why.
func killedMidRun(s *session) error {
	rows := equal(40, 200, 40, 200)
	o, err := s.part("run", rows, interruptedAfter, func(int) { s.server.kill() })
	if err != nil {
		return err
	}
	defer s.server.launch(s.engine, s.tools)
	if err := o.ran(); err != nil {
		return err
	}
	s.equal("exit status", 3, o.exit)
	s.equal("verdict", "INVALID", o.summary.Moontide.Verdict)
	s.law("failed requests", "more than 5 %", fmt.Sprint(o.summary.Failed, " of ", len(o.records)), 20*o.summary.Failed > len(rows))
	s.says("the verdict names the cause", o.evidence("failed"), "INVALID", "connect")
	return nil
}
