package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"moontide/replay"
	"moontide/replay/listen"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/replay/sim/server"
	"moontide/trace"
)

// connect starts the embedded endpoint if there is no URL, waits until the endpoint is
// ready, and negotiates the content of requests. It completes info.
func connect(ctx context.Context, cfg *Config, in *input, info *runfile.Run) (client *openai.Client, end func(), err error) {
	clientConfig := cfg.Client
	var encode server.Encoder
	if clientConfig.Source, encode, err = cfg.promptSource(in.blockSize.Tokens); err != nil {
		return nil, nil, err
	}
	clientConfig.Graph, clientConfig.TraceModels = in.plan.Graph, in.models
	clientConfig.Retries = cfg.Retries
	limit, err := checkOpenFiles(listen.OpenFiles(), cfg.Part.OpenFiles(), in.partRows, cfg.MaxConcurrency, cfg.Embedded())
	if err != nil {
		return nil, nil, err
	}
	info.Notes = append(info.Notes, limit...)
	endServer := func() {}
	if cfg.Embedded() {
		clientConfig.Model = cmp.Or(clientConfig.Model, "sim")
		if clientConfig.URL, endServer, err = embed(server.Config{
			Model: clientConfig.Model, Deployment: cfg.engines, CacheGenerated: cfg.CacheGenerated, Seed: cfg.Seed, Encode: encode, Version: cfg.Version,
		}); err != nil {
			return nil, nil, err
		}
		if cfg.simulates() {
			info.Notes = append(info.Notes, "the embedded endpoint is "+DescribeEngines(cfg.engines, cfg.file))
			info.Notes = append(info.Notes, cfg.outside(in, cfg.MaxConcurrency)...)
		}
	}
	if client, err = openai.New(clientConfig); err != nil {
		endServer()
		return nil, nil, &settings.Error{Text: err.Error()}
	}
	end = func() { client.Close(); endServer() }
	notes, err := awaitReady(ctx, cfg.Observer, cfg.WaitReady, client.Probe)
	if err != nil {
		end()
		return nil, nil, err
	}
	info.Target = cfg.target(client, clientConfig.Source)
	info.Target.ServerBlockSize, info.Target.GeneratedCached = cfg.serverBlockSize(), cfg.CacheGenerated || !cfg.Embedded()
	info.Calibrated = calibrated(cfg.CalibrationFile)
	info.Notes = slices.Concat(info.Notes, sourceNotes(clientConfig.Source), notes)
	return client, end, nil
}

// embed serves simulated engines in this process until end is called.
func embed(cfg server.Config) (url string, end func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("starting the embedded endpoint: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cfg.MaxConnections = listen.Room(2) // the client's ends are files, too
		server.Run(ctx, ln, cfg)
	}()
	return "http://" + ln.Addr().String(), func() { cancel(); <-ended }, nil
}

// Pauses between two probes of an endpoint.
const (
	firstProbeWait = 100 * time.Millisecond
	maxProbeWait   = time.Second
)

// awaitReady probes an endpoint until it is ready or patience runs out; 0 probes once.
// Each new reason of failure is a message.
func awaitReady(ctx context.Context, o Observer, patience time.Duration, probe func(context.Context) ([]string, error)) ([]string, error) {
	if patience == 0 {
		notes, err := probe(ctx)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return notes, err
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reason := ""
	for wait := firstProbeWait; ; wait = min(2*wait, maxProbeWait) {
		notes, err := probe(patient)
		if err == nil {
			return notes, nil
		}
		if patient.Err() == nil && err.Error() != reason {
			reason = err.Error()
			o.message("waiting for the endpoint: %s", reason)
		}
		select {
		case <-patient.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if reason == "" {
				reason = "it does not respond"
			}
			return nil, fmt.Errorf("the endpoint was not ready within %v: %s", patience, reason)
		case <-time.After(wait):
		}
	}
}

// warmUp sends the warm-up requests at once, up to MaxConcurrency, with the lengths of
// the trace's first rows. One failure ends the run.
func warmUp(ctx context.Context, cfg *Config, in *input, client *openai.Client) error {
	n := cfg.WarmupRequests
	if n == 0 {
		return nil
	}
	reqs, end, err := in.replayed()
	if err != nil {
		return err
	}
	defer end()
	var rows []trace.Request
	for r, err := range trace.Take(trace.Until(ctx, reqs), n) {
		if err != nil {
			return err
		}
		rows = append(rows, trace.Request{Timestamp: trace.Some(0.0), InputLength: r.InputLength, OutputLength: r.OutputLength})
	}
	for i := 0; len(rows) < n; i++ {
		rows = append(rows, rows[i])
	}
	cfg.Observer.message("warming up with %d requests", n)
	var kept recordsInMemory
	runner := replay.Runner{
		Client: client.Warmup(), Recorder: &kept,
		MaxConcurrency: cfg.MaxConcurrency, MaxErrors: 1, Drain: cfg.Drain,
	}
	_, err = runner.Run(ctx, trace.FromSlice(rows))
	failed := slices.IndexFunc(kept, func(r replay.Record) bool { return r.Class != replay.OK })
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed >= 0:
		return fmt.Errorf("a warm-up request failed, so the run did not start: %s: %s", kept[failed].Class, kept[failed].Error)
	case err != nil && !errors.Is(err, replay.ErrTooManyErrors):
		return fmt.Errorf("warming up: %w", err)
	}
	return nil
}
