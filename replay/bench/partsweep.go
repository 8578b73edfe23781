package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"moontide/replay/cluster"
	"moontide/replay/runfile"
)

// task is a run of a sweep that part 1 has decided on, as the other parts learn it.
type task struct {
	Leg            runfile.Leg    `json:"leg"`
	Name           string         `json:"name"`
	Prompts        int            `json:"prompts"`
	MaxConcurrency int            `json:"max_concurrency"`
	Draw           int            `json:"draw"`
	Folder         string         `json:"folder"` // in that of the sweep
	Salt           string         `json:"salt"`
	Window         runfile.Window `json:"window"`
}

// assign tells the other parts of the next run.
func (s *sweeper) assign(leg Leg, a attempt) error {
	if s.Run.Member == nil {
		return nil
	}
	return s.Run.Member.Assign(task{
		Leg: leg.recorded(), Name: leg.Name, Prompts: leg.Prompts, MaxConcurrency: leg.MaxConcurrency, Draw: leg.Draw,
		Folder: filepath.Base(a.Dir), Salt: a.Salt, Window: s.Run.Window,
	})
}

// leg returns the leg of a task.
func (t *task) leg(targets []Target) (Leg, error) {
	leg, err := legOf(t.Leg)
	if err != nil {
		return leg, err
	}
	i := slices.IndexFunc(targets, func(o Target) bool { return o.Label == t.Leg.Deployment })
	if i < 0 || !filepath.IsLocal(t.Folder) {
		return leg, fmt.Errorf("part 1 runs another sweep: it has a deployment %q, in folder %q", t.Leg.Deployment, t.Folder)
	}
	leg.Name, leg.Target, leg.Prompts, leg.MaxConcurrency, leg.Draw = t.Name, targets[i], t.Prompts, t.MaxConcurrency, t.Draw
	return leg, nil
}

// FollowSweep takes part in the runs of a sweep or a search on which part 1 decides:
// cfg.Run.Member is another part. It returns the number of runs once part 1 has left.
func FollowSweep(ctx context.Context, cfg SweepConfig) (runs int, err error) {
	s := sweeper{SweepConfig: cfg}
	m := cfg.Run.Member
	defer interruptAll(ctx, m, cfg.Run.Drain)()
	for {
		var t task
		if more, err := m.Task(ctx, &t); err != nil || !more {
			return runs, err
		}
		if err := s.follow(ctx, t); err != nil {
			return runs, fmt.Errorf("%s: %w", t.Name, err)
		}
		runs++
	}
}

func (s *sweeper) follow(ctx context.Context, t task) error {
	leg, err := t.leg(s.Targets)
	if err != nil {
		return err
	}
	trace, remove, err := s.draw(ctx, leg)
	if err != nil {
		return err
	}
	defer remove()
	cfg := s.config(leg, attempt{Dir: filepath.Join(s.Dir, t.Folder), Salt: t.Salt})
	cfg.Trace, cfg.Window = trace, t.Window
	if _, err = Run(ctx, cfg); errors.Is(err, ErrNoSuccess) { // part 1 knows whether another had one
		err = nil
	}
	return err
}

// interruptAll has all parts stop when this process is interrupted.
func interruptAll(ctx context.Context, m *cluster.Member, interrupts <-chan struct{}) (end func()) {
	notAborted, done := context.AfterFunc(ctx, m.Abort), make(chan struct{})
	go func() {
		select {
		case <-interrupts:
			m.Interrupt()
		case <-done:
		}
	}()
	return func() { notAborted(); close(done) }
}
