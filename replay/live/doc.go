// Package live exports a run in progress: metrics for Prometheus, and samples as JSON
// lines for other programs. Neither delays the run.
//
//	m := live.NewMetrics()
//	server, err := live.Listen("127.0.0.1:9464", m)
//	...
//	m.Start(live.Run{Name: "first", Status: runner.Status})
//	m.Record(record) // for each request that ended
package live
