// Package runfile reads and writes the folder of a run.
//
// [Create] makes a folder and returns its [Writer], a replay.Recorder; [Resume]
// continues that of a run that was cut short. [Open] reads a folder:
//
//	folder, err := runfile.Open("runs/today")
//	...
//	for rec, err := range folder.Records() {
//	}
//
// run.json ([Run]) says what was replayed and how; requests.jsonl has one line per
// request, the trace row and its [replay.Record]; samples.jsonl ([Sample]) has one
// line per second. Lines are complete when a call returns: a killed process loses
// no finished request. Times in files are milliseconds since the start of the run.
// A folder has one Writer at a time, which a file lock ensures.
package runfile
