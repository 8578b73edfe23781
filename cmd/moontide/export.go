package main

import (
	"path/filepath"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/replay/live"
)

const metricsListenFlag = "metrics-listen"

// serveLive serves the metrics of the observed runs.
func serveLive(std streams, address string, o *experiment.Observer) (*live.Server, error) {
	metrics := live.NewMetrics()
	server, err := live.Listen(address, metrics)
	if err != nil {
		return nil, err
	}
	std.say("metrics for Prometheus: http://%s/metrics", server.Address())
	start, record := o.Start, o.Record
	o.Start = func(s experiment.Started) {
		metrics.Start(live.Run{
			Name: filepath.Base(s.Dir), Trace: s.Run.Trace.Name, Model: s.Run.Target.ModelText(), Rows: s.Run.Rows, Status: s.Status,
			Verdict: func(lag, ttft time.Duration) string {
				level, _ := measure.LatenessSoFar(lag, ttft, s.Run.Thresholds)
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
