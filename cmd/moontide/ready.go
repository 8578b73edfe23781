package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/trace"
)

// The pauses between two questions whether an endpoint is ready.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = time.Second
)

// awaitReady probes an endpoint until it answers as a run needs it, for as long
// as patience lasts; without patience it is probed once. What keeps it from
// being ready is said when it changes.
func awaitReady(ctx context.Context, std streams, patience time.Duration, probe func(context.Context) ([]string, error)) ([]string, error) {
	if patience == 0 {
		return probe(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	why := ""
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		notes, err := probe(ctx)
		if err == nil {
			return notes, nil
		}
		if ctx.Err() == nil && err.Error() != why {
			why = err.Error()
			fmt.Fprintf(std.err, "moontide: waiting for the endpoint: %s\n", harmless(why))
		}
		select {
		case <-ctx.Done():
			if why == "" {
				why = "it does not answer"
			}
			return nil, fmt.Errorf("the endpoint was not ready within %v: %s", patience, why)
		case <-time.After(wait):
		}
	}
}

// mostWarmup is the largest number of warm-up requests.
const mostWarmup = 100_000

// warmUp sends the requests that come before a run: of the lengths of the
// trace's first rows, over and over, all at once but for --max-concurrency. It
// returns how many there were. One that fails is the end.
func warmUp(c *cli.Context, std streams, stop stop, in input, client *openai.Client) (int, error) {
	n := c.Int("warmup-requests")
	if n == 0 {
		return 0, nil
	}
	reader, err := openTrace(c, std, in.path)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	var rows []trace.Request
	for r, err := range trace.Take(in.shape(reader.Requests()), n) {
		if err != nil {
			return 0, err
		}
		rows = append(rows, trace.Request{Timestamp: trace.Some(0.0), InputLength: r.InputLength, OutputLength: r.OutputLength})
	}
	for i := 0; len(rows) < n; i++ {
		rows = append(rows, rows[i])
	}
	fmt.Fprintf(std.err, "moontide: warming up with %d requests\n", n)
	var outcome firstFailure
	runner := replay.Runner{
		Client: client.Warmup(), Recorder: &outcome,
		MaxConcurrency: c.Int("max-concurrency"), MaxErrors: 1, Drain: stop.gently.Done(),
	}
	_, err = runner.Run(stop.now, trace.FromSlice(rows))
	switch {
	case stop.gently.Err() != nil:
		return 0, errInterrupted
	case outcome.class != replay.OK:
		return 0, fmt.Errorf("a warm-up request failed, so the run was not begun: %s: %s", outcome.class, outcome.text)
	case err != nil && !errors.Is(err, replay.ErrTooManyErrors):
		return 0, fmt.Errorf("warming up: %w", err)
	}
	return n, nil
}

// firstFailure is a recorder that keeps nothing but why a request failed.
type firstFailure struct {
	class replay.Class
	text  string
}

// Record implements replay.Recorder.
func (f *firstFailure) Record(r replay.Record) error {
	if f.class == replay.OK {
		f.class, f.text = r.Class, r.Error
	}
	return nil
}
