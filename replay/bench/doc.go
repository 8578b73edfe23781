// Package bench is plans of runs: what takes more than one replay to find out.
//
// [Sweep] plans runs that differ in how much load there is; who has the plan
// drives them.
//
// [Calibrate] finds out how far the client itself can be believed on a machine.
// It drives a simulated endpoint, in a process of its own, that says of each
// event when it was written, at growing load, and compares that with what the
// client recorded. The endpoint's writing is the truth, so what differs is the
// client's error, and the network's of the machine with itself. The client is
// the one of a replay in all its parts: [moontide/replay/openai], a
// [replay.Runner] and a [replay.Folder].
//
//	c, err := bench.Calibrate(ctx, bench.CalibrateConfig{Start: start, Dir: dir})
//	if err != nil { ... }
//	fmt.Println(c.Range.Streams, "streams at once")
//
// [Calibration.Save] keeps what was found, and [LoadCalibration] has it again;
// [Calibration.For] says whether it is this machine's.
package bench
