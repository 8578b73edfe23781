package experiment

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"moontide/replay"
	"moontide/replay/cluster"
	"moontide/replay/runfile"
	"moontide/trace"
)

// earlierRun is the stopped or killed run that is resumed, or nil.
type earlierRun struct {
	dir    string
	run    runfile.Run
	folder *runfile.Writer
	past   *replay.ResumeState
}

// Resumable returns the record of the run in a folder, or an error if the run
// cannot be resumed.
func Resumable(dir string) (runfile.Run, error) {
	recorded, err := runfile.Open(dir)
	if err != nil {
		return runfile.Run{}, resuming(dir, err)
	}
	recorded.Close()
	switch {
	case recorded.Run.Settings.Virtual:
		return runfile.Run{}, resuming(dir, errors.New("it is a simulation: run it again"))
	case recorded.Run.Finished() && recorded.Run.Part.Of == 0: // the other parts may not be complete
		return runfile.Run{}, resuming(dir, errors.New("the run is complete"))
	}
	return recorded.Run, nil
}

func resuming(dir string, err error) error { return fmt.Errorf("resuming the run in %s: %w", dir, err) }

// openEarlier locks the folder of the run to resume and reads its progress.
func openEarlier(cfg *Config, in *input) (*earlierRun, error) {
	if !cfg.Resume {
		return nil, nil
	}
	e := &earlierRun{dir: cfg.recordDir()}
	was, err := Resumable(e.dir)
	switch {
	case err != nil:
		return nil, err
	case in.sha256 != was.Trace.SHA256:
		return nil, resuming(e.dir, fmt.Errorf("it is another trace: its SHA-256 is %s, the run's is %s", in.sha256, was.Trace.SHA256))
	case cfg.Part == nil && was.Part.Of > 0:
		return nil, resuming(e.dir, fmt.Errorf("it is part %d of %d of a run: resume the parts together", was.Part.Number, was.Part.Of))
	case cfg.Part != nil && was.Part.Of > 0 && (was.Part.Number != cfg.Part.Number || was.Part.Of != cfg.Part.Of || was.Part.By != cfg.Part.By):
		return nil, resuming(e.dir, fmt.Errorf("it is part %d of %d, split by %s", was.Part.Number, was.Part.Of, was.Part.By))
	case in.plan.Schedule != was.Schedule || in.partRows != was.Rows:
		return nil, resuming(e.dir, fmt.Errorf("this version schedules the trace differently from %s", was.Version))
	}
	if e.folder, err = runfile.Resume(e.dir); err != nil {
		return nil, err
	}
	if err := e.read(in); err != nil {
		e.release()
		return nil, resuming(e.dir, err)
	}
	return e, nil
}

// release closes the folder. It is a no-op after the run has closed it.
func (e *earlierRun) release() {
	if e != nil {
		e.folder.Close()
	}
}

func (e *earlierRun) read(in *input) error {
	recorded, err := runfile.Open(e.dir)
	if err != nil {
		return err
	}
	defer recorded.Close()
	e.run = recorded.Run // read again under the lock
	if e.past, err = replay.ReadResumeState(recorded.Records(), in.plan); err != nil {
		return err
	}
	if d := e.run.Settings.Duration; d > 0 && e.past.Clock >= d {
		return fmt.Errorf("the run's duration of %v was over when it ended: nothing is left to send", d)
	}
	return nil
}

// progress returns the progress of a part.
func (e *earlierRun) progress() cluster.Progress {
	if e == nil || e.run.Part.Of == 0 { // it was killed before it started
		return cluster.Progress{}
	}
	return cluster.Progress{RunID: e.run.Part.RunID, Clock: e.past.Clock, LastRow: e.past.LastRow(), Complete: e.run.Finished()}
}

// together returns the state from which a part continues with the others.
func (in *input) together(past *replay.ResumeState, all cluster.Progress) (*replay.ResumeState, error) {
	if all.RunID == "" {
		return past, nil
	}
	if past == nil { // this part did not take part before
		var err error
		if past, err = replay.ReadResumeState(func(func(replay.Record, error) bool) {}, in.plan); err != nil {
			return nil, err
		}
	}
	rows, end, err := in.replayed()
	if err != nil {
		return nil, err
	}
	defer end()
	return past, past.Align(all.Clock, all.LastRow, rows, in.plan.Graph)
}

// record opens the folder for the run: a new one in dir, or the folder of the
// earlier run, to append to its record.
func (e *earlierRun) record(info *runfile.Run, dir string) (*runfile.Writer, *replay.ResumeState, error) {
	if e == nil {
		folder, err := runfile.Create(dir, *info)
		return folder, nil, err
	}
	again := max(e.run.Sent-e.past.Rows, 0)
	info.Resumed = append(e.run.Resumed, runfile.Resumption{
		At: time.Now(), RowsDone: e.past.Rows, SentAgain: again, ClockMS: trace.MS(e.past.Clock),
	})
	info.Started, info.Command, info.Part = e.run.Started, e.run.Command, e.run.Part
	info.Warmup += e.run.Warmup
	info.Notes = append(info.Notes, fmt.Sprintf("the run was resumed: %d requests had ended, %d that were in flight were sent again; the pause is in no metric", e.past.Rows, again))
	for _, note := range e.run.Notes {
		if !slices.Contains(info.Notes, note) {
			info.Notes = append(info.Notes, note)
		}
	}
	if err := e.folder.WriteRun(*info); err != nil {
		return nil, nil, resuming(e.dir, err)
	}
	return e.folder, e.past, nil
}
