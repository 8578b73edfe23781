package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/parts"
	"moontide/replay/runfile"
	"moontide/replay/settings"
)

// GoodputOf returns the objectives of each request, nil without any.
func GoodputOf(s *settings.Settings) ([]measure.Objective, error) {
	if s.Objectives.Goodput == "" {
		return nil, nil
	}
	return slo.ParseObjectives(s.Objectives.Goodput)
}

// MeasureConfig configures [Measure]. The zero value uses the settings of the run.
type MeasureConfig struct {
	// Change, if not nil, first modifies the settings, such as window and thresholds.
	Change         func(*runfile.Run)
	Detail         bool // see [measure.Options]
	EachPrediction bool // see [measure.Options]
}

// Measure measures the run in a folder: see [OpenRecording].
func Measure(cfg MeasureConfig, dir string) (*Result, error) {
	r, err := OpenRecording(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	opts, err := r.Options(cfg)
	if err != nil {
		return nil, err
	}
	metrics, err := measure.Compute(r.Records, opts)
	if err != nil {
		return nil, err
	}
	return &Result{Dir: dir, Run: r.Run, Metrics: metrics, Damaged: r.Damaged()}, nil
}

// Recording is the record of a run.
type Recording struct {
	parts.Part
	merged  *parts.Merged // nil if the run is in one folder
	dir     string
	dirs    []string // of the parts
	folders []*runfile.Reader
}

// OpenRecording opens the folder of a run, which may have a folder for each of several
// processes. The caller must close the recording.
func OpenRecording(dir string) (*Recording, error) {
	r := &Recording{dir: dir, dirs: []string{dir}}
	if err := r.open(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Recording) open() error {
	known, err := runfile.ReadParts(r.dir)
	whole := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	if !whole {
		if err != nil {
			return err
		}
		r.dirs = slices.DeleteFunc(known.Folders(r.dir), func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, runfile.RunFile))
			return errors.Is(err, fs.ErrNotExist)
		})
		if len(r.dirs) == 0 {
			return fmt.Errorf("the run in %s has no folder of a part", r.dir)
		}
	}
	var recordings []parts.Part
	for _, dir := range r.dirs {
		folder, err := openFolder(dir)
		if err != nil {
			return err
		}
		r.folders = append(r.folders, folder)
		folder.Share(len(r.dirs))
		recordings = append(recordings, parts.Part{Name: dir, Run: folder.Run, Records: inFolder(dir, len(r.dirs), folder.Records()), Samples: runfile.Samples(dir)})
	}
	if whole {
		r.Part = recordings[0]
		return nil
	}
	if r.merged, err = parts.Merge(recordings, &known); err != nil {
		return err
	}
	r.Part = r.merged.Part
	return nil
}

// openFolder opens the folder of a run.
func openFolder(dir string) (*runfile.Reader, error) {
	folder, err := runfile.Open(dir)
	if err != nil {
		if IsSet(dir) {
			return nil, fmt.Errorf("%s is the folder of a set, not of a run: name the runs in it, %s", dir, filepath.Join(dir, "*"))
		}
		return nil, err
	}
	if folder.Run.Version == "" && folder.Run.Started.IsZero() { // another tool's run.json
		folder.Close()
		return nil, fmt.Errorf("not a run's folder: %s has neither a version nor a start time", filepath.Join(dir, runfile.RunFile))
	}
	return folder, nil
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

// Options returns the options for [measure.Compute]. It adds notes to Run.
func (r *Recording) Options(cfg MeasureConfig) (measure.Options, error) {
	if cfg.Change != nil {
		cfg.Change(&r.Run)
	}
	window, err := r.cutWindow()
	if err != nil {
		return measure.Options{}, err
	}
	samples, err := measure.SummarizeSamples(r.Samples, window)
	if err != nil {
		return measure.Options{}, err
	}
	info := &r.Run
	opts := optionsOf(info)
	opts.Samples, opts.Window, opts.Expected = samples, window, r.expected()
	opts.Detail, opts.EachPrediction = cfg.Detail, cfg.EachPrediction
	opts.Unreadable = unreadable(r.folders...)
	for _, folder := range r.folders {
		opts.Gaps = append(opts.Gaps, folder.Gaps...)
	}
	if r.merged == nil {
		if place := info.Part; place.Of > 1 {
			info.Notes = append(info.Notes, fmt.Sprintf("this is part %d of %d of a run: report the folder above it for the whole; what the other parts left in the server's cache is unknown here, so cache hits are not predicted", place.Number, place.Of))
		}
		return opts, nil
	}
	opts.Parts = r.merged
	opts.PartOptions, err = r.partOptions(opts)
	return opts, err
}

// partOptions returns the options that judge each part, with the window and the thresholds of
// the whole run.
func (r *Recording) partOptions(whole measure.Options) (all []measure.Options, err error) {
	for i := range r.merged.Parts {
		opts := optionsOf(&r.merged.Parts[i].Run)
		opts.Window, opts.Thresholds = whole.Window, whole.Thresholds
		opts.Expected = whole.Expected / len(r.folders)
		opts.Unreadable = unreadable(r.folders[i])
		samples, err := measure.SummarizeSamples(runfile.Samples(r.dirs[i]), measure.Span{})
		if err != nil {
			return nil, err
		}
		opts.Samples.Client = samples.Client
		all = append(all, opts)
	}
	return all, nil
}

// optionsOf returns the options for [measure.Compute] that are in run.json.
func optionsOf(info *runfile.Run) measure.Options {
	s := &info.Settings
	opts := measure.Options{
		Rows: info.Rows, Sent: info.Sent, Skipped: info.Skipped, CutTurns: info.Cut, Outgrown: info.Outgrown, Unfinished: info.Unfinished, LostTurns: info.LostTurns,
		BlockSize: info.Trace.BlockSize, ServerBlockSize: info.Target.ServerBlockSize,
		LiveAnswers: s.LiveAnswers(), GeneratedCached: info.Target.GeneratedCached,
		TextAnswers: s.LiveAnswers() && !s.Virtual && info.Target.Prompt != openai.Tokens,
		Virtual:     s.Virtual, CountedISL: info.CountedISL, TemplateTokens: info.Target.TemplateTokens,
		LengthsEnforced: info.Target.IgnoreEOS || info.Target.MinTokens, MaxConcurrency: info.MaxConcurrency(), Closed: s.Closed,
		ReadDelay: info.ReadDelay, Merges: info.Merges, Thresholds: s.Thresholds,
	}
	opts.Objectives, _ = slo.ParseObjectives(s.Objectives.Goodput) // Check has refused wrong ones
	if place := info.Part; place.Of > 0 {                          // rows are numbered in the whole run
		opts.Rows = place.RunRows
		if place.Of > 1 {
			opts.BlockSize = 0
		}
	}
	return opts
}

// cutWindow finds the window of the run in another pass over the records. It replaces an
// empty window by a note.
func (r *Recording) cutWindow() (measure.Span, error) {
	info := &r.Run
	if info.Settings.Window == (runfile.Window{}) {
		return measure.Span{}, nil
	}
	if info.Settings.Output.NoChunkTimes {
		info.Notes = append(info.Notes, "no window can be cut without the times of token chunks, so all of the run is measured")
		return measure.Span{}, nil
	}
	again, err := OpenRecording(r.dir)
	if err != nil {
		return measure.Span{}, err
	}
	defer again.Close()
	extent, err := measure.Extent(again.Records, info.Settings.Window)
	if err != nil {
		return measure.Span{}, err
	}
	window, err := measure.Cut(extent, info.Settings.Window)
	if err != nil {
		info.Notes = append(info.Notes, fmt.Sprintf("%v, so all of the run is measured", err))
	}
	return window, nil
}

// expected estimates the number of records: the count in run.json, bounded by file sizes.
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

// unreadable returns a function for the number of unreadable lines and the first error.
func unreadable(folders ...*runfile.Reader) func() (lines int, first error) {
	return func() (lines int, first error) {
		for _, folder := range folders {
			if n, reasons := folder.Damaged(); n > 0 {
				lines, first = lines+n, cmp.Or(first, reasons[0])
			}
		}
		return lines, first
	}
}

// Close closes the files.
func (r *Recording) Close() error {
	var failed error
	for _, folder := range r.folders {
		failed = errors.Join(failed, folder.Close())
	}
	return failed
}
