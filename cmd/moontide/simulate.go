package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/virtual"
	"moontide/trace"
)

func simulateCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:      "simulate",
		Usage:     "replay a trace against simulated engines in virtual time: an hour takes a second",
		ArgsUsage: "TRACE",
		Description: "The engines are those of moontide serve; the defaults approximate Llama 3.1 8B in FP8 on one\n" +
			"H100. The run folder has the same files as that of a replay, so every report works on it.",
		Flags: grouped(pacingFlags(), runFlags(), []cli.Flag{
			&cli.Uint64Flag{Name: "seed", Category: inLoad, Usage: "seed of drawn arrivals and of the random router"},
			tokenizerFlag(inTraceInput),
		}, engineFlags()),
		Action: func(c *cli.Context) error { return simulateTrace(c, std, stop) },
	}
}

func simulateTrace(c *cli.Context, std streams, stop stop) error {
	path, err := one(c, "a trace")
	if err != nil {
		return err
	}
	if err := checkRunFlags(c); err != nil {
		return err
	}
	p, err := pacingOf(c)
	if err != nil {
		return err
	}
	deployment, err := deploymentOf(c)
	if err != nil {
		return err
	}
	file, remove, err := spoolTrace(std, path)
	if err != nil {
		return err
	}
	defer remove()
	in, err := inspect(stop.gently, c, std, file, p, func(trace.Request) error { return nil })
	if err != nil {
		return err
	}
	in.name = traceName(path)
	dir, err := runFolder(c, path)
	if err != nil {
		return err
	}
	return simulate(c, std, stop, in, deployment, dir)
}

// simulatedRun is what run.json says of a simulation before it begins.
func simulatedRun(c *cli.Context, in input, d engine.Deployment) runfile.Run {
	info := runOf(c, in)
	info.Started = time.Now()
	info.Target = runfile.Target{Model: "sim", Endpoint: "virtual", Prompt: "hash_ids", Simulated: true, Virtual: true, IgnoreEOS: true}
	info.Notes = append(info.Notes, fmt.Sprintf("simulated in virtual time: %v", d))
	return info
}

func simulate(c *cli.Context, std streams, stop stop, in input, d engine.Deployment, dir string) error {
	endpoint, err := virtual.New(virtual.Config{
		Deployment: d, TraceBlockSize: in.blockSize.Tokens, CacheGenerated: c.Bool(cacheGeneratedFlag),
	})
	if err != nil {
		return err
	}
	reader, err := openTrace(c, std, in.path)
	if err != nil {
		return err
	}
	defer reader.Close()
	info := simulatedRun(c, in, d)
	folder, err := runfile.Create(dir, info)
	if err != nil {
		return err
	}
	folder.KeepText = c.Bool("keep-text")

	kept := keepAndMeasure(folder, run.Options{BlockSize: in.blockSize.Tokens, Virtual: true, Detail: true})
	runner := replay.VirtualRunner{
		Model: endpoint, Recorder: kept,
		MaxConcurrency: info.Limits.MaxConcurrency, Closed: info.Limits.Closed, Duration: c.Duration("duration"), Sessions: &in.plan.Sessions,
	}
	tally, runErr := runner.Run(stop.gently, in.shape(reader.Requests()))
	result, err := kept.end()

	info.Ended = time.Now()
	info.Sent, info.NotSent, info.Skipped = tally.Sent, info.Rows-tally.Sent, tally.Skipped
	info.TimeUp = tally.TimeUp && runErr == nil && info.NotSent > tally.Skipped
	switch {
	case errors.Is(runErr, context.Canceled):
		info.Stopped, runErr = true, nil
		info.Notes = append(info.Notes, fmt.Sprintf("%d requests were in flight when it was stopped, and are not in the record", tally.Unrecorded))
	case runErr == nil && !tally.TimeUp && tally.Sent+tally.Skipped != info.Rows:
		runErr = fmt.Errorf("the trace changed while it was simulated: it had %d rows, and then %d", info.Rows, tally.Sent+tally.Skipped)
	}
	if errors.Is(runErr, errNotKept) {
		runErr = nil // err says why
	}
	if runErr = errors.Join(runErr, err); runErr != nil {
		info.Failure = runErr.Error()
	}
	err = errors.Join(runErr, folder.WriteRun(info))
	if result == nil {
		return err
	}
	if info.Window != (runfile.Window{}) { // it goes by the info's end, which is known only now
		var measureErr error
		if info, result, measureErr = (recording{dir}).measure(std, func(r *runfile.Run) { *r = info }, inDetail); measureErr != nil {
			return errors.Join(err, measureErr)
		}
	}
	return errors.Join(err, present(std, dir, info, result))
}

// keeper is a recorder that writes a run's folder and measures the run at the
// same time: to read the records again would take longer than to make them.
type keeper struct {
	toKeep, toMeasure chan replay.Record
	failed            chan struct{} // closed when the folder takes no more
	keeping           sync.WaitGroup
	result            *run.Result
	keepErr           error // of writing the folder, and of closing it
}

func keepAndMeasure(folder *runfile.Writer, opts run.Options) *keeper {
	k := &keeper{
		toKeep: make(chan replay.Record, 256), toMeasure: make(chan replay.Record, 256),
		failed: make(chan struct{}),
	}
	k.keeping.Go(func() {
		for rec := range k.toKeep {
			if k.keepErr != nil {
				continue
			}
			if k.keepErr = folder.Record(rec); k.keepErr != nil {
				close(k.failed)
			}
		}
		// It waits for the disk, meanwhile the run is measured.
		k.keepErr = errors.Join(k.keepErr, folder.Close())
	})
	k.keeping.Go(func() {
		k.result, _ = run.Compute(received(k.toMeasure), opts) // its errors are those of the records, and there are none
	})
	return k
}

// errNotKept ends a simulation whose folder has failed, for a reason that keeper.end
// tells.
var errNotKept = errors.New("the record cannot be written")

// Record passes a record on. Once the folder has failed it refuses.
func (k *keeper) Record(rec replay.Record) error {
	select {
	case <-k.failed:
		return errNotKept
	default:
	}
	k.toKeep <- rec
	k.toMeasure <- rec
	return nil
}

// end waits for what was recorded to be written and measured, and closes the
// folder's records.
func (k *keeper) end() (*run.Result, error) {
	close(k.toKeep)
	close(k.toMeasure)
	k.keeping.Wait()
	return k.result, k.keepErr
}

// received is the stream of what comes through a channel.
func received(records <-chan replay.Record) iter.Seq2[replay.Record, error] {
	return func(yield func(replay.Record, error) bool) {
		for rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
}
