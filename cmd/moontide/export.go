package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/live"
	"moontide/replay/runfile"
)

const (
	metricsListenFlag = "metrics-listen"
	eventsFlag        = "events"
)

// exportFlags returns the flags that export a run while it is going on.
func exportFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: metricsListenFlag, Category: inRunControl, Usage: "serve live Prometheus metrics at /metrics on `ADDRESS`, such as 127.0.0.1:9464", DefaultText: "no metrics"},
		&cli.StringFlag{Name: eventsFlag, Category: inOutput, Usage: "also write the lines of samples.jsonl to `FILE` every second; - for standard output instead of the report"},
	}
}

// export adds the exports of a run to its observer. The caller calls end after the
// run. Events are those of part 1: a part that follows it would write the same file.
func export(c *cli.Context, std streams, follows bool, cfg *bench.Config) (end func() error, err error) {
	var ends []func() error
	end = func() error {
		var all []error
		for _, f := range ends {
			all = append(all, f())
		}
		return errors.Join(all...)
	}
	if address := c.String(metricsListenFlag); address != "" {
		server, err := serveLive(std, address, &cfg.Observer)
		if err != nil {
			return nil, err
		}
		ends = append(ends, server.Close)
	}
	path := c.String(eventsFlag)
	if path == "" || follows {
		return end, nil
	}
	to := std.out
	if path != "-" {
		f, err := os.Create(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("writing events: %w", err), end())
		}
		ends, to = append(ends, f.Close), f
	}
	ends = append([]func() error{writeEvents(std, to, &cfg.Observer)}, ends...)
	return end, nil
}

// serveLive serves the metrics of the runs that an observer sees.
func serveLive(std streams, address string, o *bench.Observer) (*live.Server, error) {
	metrics := live.NewMetrics()
	server, err := live.Listen(address, metrics)
	if err != nil {
		return nil, err
	}
	std.say("metrics for Prometheus: http://%s/metrics", server.Address())
	start, record := o.Start, o.Record
	o.Start = func(s bench.Started) {
		metrics.Start(live.Run{
			Name: filepath.Base(s.Dir), Trace: s.Run.Trace.Name, Model: s.Run.Target.ModelText(), Rows: s.Run.Rows, Status: s.Status,
			Verdict: func(lag, ttft time.Duration) string {
				level, _ := run.LatenessSoFar(lag, ttft, s.Run.Thresholds)
				return level.String()
			},
		})
		if start != nil {
			start(s)
		}
	}
	o.Record = func(rec replay.Record) {
		metrics.Record(rec)
		if record != nil {
			record(rec)
		}
	}
	return server, nil
}

// writeEvents writes the samples that an observer sees.
func writeEvents(std streams, to io.Writer, o *bench.Observer) (end func() error) {
	events := live.NewEvents(to)
	o.Sample = func(s runfile.Sample) {
		if line, err := s.Line(); err == nil { // the record of the run reports an error
			events.Add(line)
		}
	}
	return func() error {
		dropped, err := events.Close()
		if dropped > 0 && err == nil {
			std.say("events: %d lines were dropped because they were not read in time; samples.jsonl has all", dropped)
		}
		if err != nil {
			return fmt.Errorf("writing events: %w", err)
		}
		return nil
	}
}
