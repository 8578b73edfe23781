// Package live serves the metrics of a run in progress for Prometheus, without delaying
// the run.
//
//	m := live.NewMetrics()
//	server, err := live.Listen("127.0.0.1:9464", m)
//	...
//	m.Start(live.Run{Name: "first", Status: runner.Status})
//	m.Record(record) // for each request that ended
package live
