package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
)

// recording is the folder of a run, or those of the machines that drove one test.
type recording []string

// opened is a recording that is being read.
type opened struct {
	run.Part
	dirs    recording
	folders []*runfile.Reader
}

func (dirs recording) open() (*opened, error) {
	o := &opened{dirs: dirs}
	var parts []run.Part
	for _, dir := range dirs {
		folder, err := runfile.Open(dir)
		if err != nil {
			o.Close()
			return nil, err
		}
		o.folders = append(o.folders, folder)
		if folder.Run.Version == "" && folder.Run.Started.IsZero() { // some other tool's info.json
			o.Close()
			return nil, fmt.Errorf("not a run's folder: %s says neither when the run started nor by which version", filepath.Join(dir, runfile.RunFile))
		}
		parts = append(parts, run.Part{Run: folder.Run, Records: inFolder(dir, len(dirs), folder.Records()), Samples: runfile.Samples(dir)})
	}
	o.Part = run.Merge(parts)
	return o, nil
}

// inFolder says of an error which of several folders it is of.
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

// expected is about how many records there are: at most what the files have room
// for, whatever run.json says.
func (o *opened) expected() int {
	const (
		shortest = 200     // bytes of a line: its names alone are more
		most     = 1 << 21 // a file's size may be a lie, too
	)
	room := int64(0)
	for _, dir := range o.dirs {
		if file, err := os.Stat(filepath.Join(dir, runfile.RequestsFile)); err == nil {
			room += file.Size() / shortest
		}
	}
	return int(max(0, min(int64(o.Run.Rows), room, most)))
}

// gaps are those that the folders' records do not have.
func (o *opened) gaps() (counts []runfile.GapCount) {
	for _, folder := range o.folders {
		counts = append(counts, folder.Gaps...)
	}
	return counts
}

func (o *opened) Close() error {
	var failed error
	for _, folder := range o.folders {
		failed = errors.Join(failed, folder.Close())
	}
	return failed
}

// reportDamaged says which lines could not be read.
func (o *opened) reportDamaged(std streams) {
	for i, folder := range o.folders {
		reportDamaged(std, o.dirs[i], folder)
	}
}

// measure computes the metrics of the run in a folder, after change has had its
// say in how; each keeps the predictions of all requests.
func measure(std streams, dir string, change func(*runfile.Run), each bool) (runfile.Run, *run.Result, error) {
	return recording{dir}.measure(std, change, func(opts *run.Options) { opts.EachPrediction = each })
}

// measure computes the metrics of a recording, after change and ask have had
// their say in how.
func (dirs recording) measure(std streams, change func(*runfile.Run), ask func(*run.Options)) (runfile.Run, *run.Result, error) {
	o, opts, err := dirs.openToMeasure(change)
	if err != nil {
		return runfile.Run{}, nil, err
	}
	defer o.Close()
	ask(&opts)
	result, err := run.Compute(o.Records, opts)
	o.reportDamaged(std)
	return o.Run, result, err
}

// openRun opens the run in a folder to be measured as it says, after change has
// had its say.
func openRun(dir string, change func(*runfile.Run)) (*runfile.Reader, run.Options, error) {
	o, opts, err := recording{dir}.openToMeasure(change)
	if err != nil {
		return nil, opts, err
	}
	o.folders[0].Run = o.Run
	return o.folders[0], opts, nil
}

func (dirs recording) openToMeasure(change func(*runfile.Run)) (*opened, run.Options, error) {
	o, err := dirs.open()
	if err != nil {
		return nil, run.Options{}, err
	}
	info := &o.Run
	change(info)
	window, err := dirs.cutWindow(info)
	if err != nil {
		o.Close()
		return nil, run.Options{}, err
	}
	observed, err := run.Observe(o.Samples, window)
	if err != nil {
		o.Close()
		return nil, run.Options{}, err
	}
	return o, run.Options{
		BlockSize: info.Trace.BlockSize, Virtual: info.Target.Virtual, CountedISL: info.Target.CountedISL, TemplateTokens: info.Target.TemplateTokens,
		ReadDelay: info.ReadDelay, Merges: info.Merges, Gaps: o.gaps(), Observed: observed,
		Window: window, Thresholds: info.Thresholds, Expected: o.expected(),
	}, nil
}

// reportDamaged says which lines of a run's record could not be read.
func reportDamaged(std streams, dir string, recorded *runfile.Reader) {
	if n, reasons := recorded.Damaged(); n > 0 {
		fmt.Fprintf(std.err, "moontide: %s: lines that could not be read: %d, the first: %v\n", filepath.Join(dir, runfile.RequestsFile), n, reasons[0])
	}
}

// cutWindow finds the window of a run, for which its records have to be read
// once more. One that leaves nothing is given up: what was measured is shown
// whatever went wrong.
func (dirs recording) cutWindow(info *runfile.Run) (run.Span, error) {
	if info.Window == (runfile.Window{}) {
		return run.Span{}, nil
	}
	if info.NoChunkTimes {
		info.Notes = append(info.Notes, "no window can be cut without the times of token chunks, so all of it is measured")
		return run.Span{}, nil
	}
	again, err := dirs.open()
	if err != nil {
		return run.Span{}, err
	}
	defer again.Close()
	extent, err := run.Extent(again.Records)
	if err != nil {
		return run.Span{}, err
	}
	window, err := run.Cut(extent, info.Window)
	if err != nil {
		info.Notes = append(info.Notes, fmt.Sprintf("%v, so all of it is measured", err))
	}
	return window, nil
}
