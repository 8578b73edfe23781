package bench

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/runfile"
)

// MeasureConfig configures how recorded runs are measured. The zero value uses
// the settings of the run.
type MeasureConfig struct {
	// Change, if not nil, modifies the record of the run first, for instance its
	// window and thresholds.
	Change         func(*runfile.Run)
	Objectives     []run.Objective // for goodput
	Detail         bool            // see [run.Options]
	EachPrediction bool            // see [run.Options]
}

// Measure measures the run in a folder. Several folders are parts of one run
// that several machines drove at once. It is INVALID if a part is.
func Measure(cfg MeasureConfig, dirs ...string) (*Result, error) {
	invalid, err := invalidParts(cfg, dirs)
	if err != nil {
		return nil, err
	}
	r, err := OpenRecording(dirs...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	opts, err := r.Options(cfg)
	if err != nil {
		return nil, err
	}
	opts.PartFaults = append(opts.PartFaults, invalid...)
	metrics, err := run.Compute(r.Records, opts)
	if err != nil {
		return nil, err
	}
	return &Result{Dir: dirs[0], Run: r.Run, Metrics: metrics, Damaged: r.Damaged()}, nil
}

// invalidParts describes the parts of a run that are INVALID by themselves: their
// faults may be too rare to show among all records.
func invalidParts(cfg MeasureConfig, dirs []string) (faults []string, err error) {
	if len(dirs) == 1 {
		return nil, nil
	}
	for _, dir := range dirs {
		part, err := Measure(MeasureConfig{Change: cfg.Change}, dir)
		if err != nil {
			return nil, err
		}
		if v := part.Metrics.Verdict; v.Level == run.Invalid {
			faults = append(faults, fmt.Sprintf("the run in %s is INVALID by itself: see its report", dir))
		}
	}
	return faults, nil
}

// Recording is the record of a run, opened for reading.
type Recording struct {
	run.Part
	faults  []string // of its parts
	dirs    []string
	folders []*runfile.Reader
}

// OpenRecording opens the folder of a run, or the folders of its parts. The
// caller must close the recording.
func OpenRecording(dirs ...string) (*Recording, error) {
	r := &Recording{dirs: dirs}
	var parts []run.Part
	for _, dir := range dirs {
		folder, err := runfile.Open(dir)
		if err != nil {
			r.Close()
			if _, sweep := os.Stat(filepath.Join(dir, SweepFile)); sweep == nil {
				return nil, fmt.Errorf("%s is the folder of a sweep, not of a run: name the runs in it, %s", dir, filepath.Join(dir, "*"))
			}
			return nil, err
		}
		r.folders = append(r.folders, folder)
		if folder.Run.Version == "" && folder.Run.Started.IsZero() { // another tool's run.json
			r.Close()
			return nil, fmt.Errorf("not a run's folder: %s has neither a version nor a start time", filepath.Join(dir, runfile.RunFile))
		}
		parts = append(parts, run.Part{Run: folder.Run, Records: inFolder(dir, len(dirs), folder.Records()), Samples: runfile.Samples(dir)})
	}
	if len(parts) > 1 {
		r.faults = run.PartFaults(parts)
	}
	var err error
	if r.Part, err = run.Merge(parts); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// inFolder adds the folder to errors if there are several.
func inFolder(dir string, folders int, records iter.Seq2[replay.Record, error]) iter.Seq2[replay.Record, error] {
	if folders == 1 {
		return records
	}
	return func(yield func(replay.Record, error) bool) {
		for rec, err := range records {
			if err != nil {
				err = fmt.Errorf("%s: %w", dir, err)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Options returns the options for [run.Compute]. It adds notes to Run.
func (r *Recording) Options(cfg MeasureConfig) (run.Options, error) {
	if cfg.Change != nil {
		cfg.Change(&r.Run)
	}
	window, err := r.cutWindow()
	if err != nil {
		return run.Options{}, err
	}
	samples, err := run.SummarizeSamples(r.Samples, window)
	if err != nil {
		return run.Options{}, err
	}
	info := &r.Run
	opts := optionsOf(info)
	opts.Samples, opts.Window, opts.Expected = samples, window, r.expected()
	opts.Objectives, opts.Detail, opts.EachPrediction = cfg.Objectives, cfg.Detail, cfg.EachPrediction
	opts.Unreadable, opts.PartFaults = r.unreadable, r.faults
	for _, folder := range r.folders {
		opts.Gaps = append(opts.Gaps, folder.Gaps...)
	}
	return opts, nil
}

// optionsOf returns the options for [run.Compute] that are in run.json.
func optionsOf(info *runfile.Run) run.Options {
	return run.Options{
		Rows: info.Rows, Sent: info.Sent, Skipped: info.Skipped, CutTurns: info.Cut, Outgrown: info.Outgrown, Unfinished: info.Unfinished, LostTurns: info.LostTurns,
		BlockSize: info.Trace.BlockSize, ServerBlockSize: info.Target.ServerBlockSize,
		LiveAnswers: info.Target.LiveAnswers, TextAnswers: info.Target.Prompt != openai.Tokens, GeneratedCached: info.Target.GeneratedCached,
		Virtual: info.Target.Virtual, CountedISL: info.Target.CountedISL, TemplateTokens: info.Target.TemplateTokens,
		LengthsEnforced: info.Target.IgnoreEOS || info.Target.MinTokens, MaxConcurrency: info.Limits.MaxConcurrency, Closed: info.Limits.Closed,
		ReadDelay: info.ReadDelay, Merges: info.Merges, Thresholds: info.Thresholds,
	}
}

// cutWindow finds the window of the run, which takes another pass over the
// records. An empty window is dropped with a note.
func (r *Recording) cutWindow() (run.Span, error) {
	info := &r.Run
	if info.Window == (runfile.Window{}) {
		return run.Span{}, nil
	}
	if info.NoChunkTimes {
		info.Notes = append(info.Notes, "no window can be cut without the times of token chunks, so all of the run is measured")
		return run.Span{}, nil
	}
	again, err := OpenRecording(r.dirs...)
	if err != nil {
		return run.Span{}, err
	}
	defer again.Close()
	extent, err := run.Extent(again.Records, info.Window.WarmupRequests)
	if err != nil {
		return run.Span{}, err
	}
	window, err := run.Cut(extent, info.Window)
	if err != nil {
		info.Notes = append(info.Notes, fmt.Sprintf("%v, so all of the run is measured", err))
	}
	return window, nil
}

// expected estimates the number of records. It is bounded by file sizes in case
// the count in run.json is too large.
func (r *Recording) expected() int {
	const (
		shortestLine = 200
		most         = 1 << 21 // a file's size may be wrong too
	)
	room := int64(0)
	for _, dir := range r.dirs {
		if file, err := os.Stat(filepath.Join(dir, runfile.RequestsFile)); err == nil {
			room += file.Size() / shortestLine
		}
	}
	return int(max(0, min(int64(r.Run.Rows), room, most)))
}

// Damaged describes the unreadable lines, one text per file. It is complete
// once the records have been read.
func (r *Recording) Damaged() (damaged []string) {
	for i, folder := range r.folders {
		if n, reasons := folder.Damaged(); n > 0 {
			damaged = append(damaged, fmt.Sprintf("%s: unreadable lines: %d; the first: %v", filepath.Join(r.dirs[i], runfile.RequestsFile), n, reasons[0]))
		}
	}
	return damaged
}

// unreadable returns the number of unreadable lines in all files, and the first.
func (r *Recording) unreadable() (lines int, first error) {
	for _, folder := range r.folders {
		n, reasons := folder.Damaged()
		if n > 0 && first == nil {
			first = reasons[0]
		}
		lines += n
	}
	return lines, first
}

// Close closes the files.
func (r *Recording) Close() error {
	var failed error
	for _, folder := range r.folders {
		failed = errors.Join(failed, folder.Close())
	}
	return failed
}
