// Package runfile reads and writes the folder of a run.
//
// [Create] creates a folder and returns its [Writer], a replay.Recorder. [Resume]
// continues the folder of an interrupted run. [Open] reads a folder:
//
//	folder, err := runfile.Open("runs/today")
//	...
//	for rec, err := range folder.Records() {
//	}
//
// run.json ([Run]) describes the replay; requests.jsonl has one line per request,
// with the trace row and its [replay.Record]; samples.jsonl ([Sample]) has one
// line per second. Each line is complete when the call that writes it returns, so
// a killed process loses no finished request. Times in files are milliseconds
// since the start of the run. A file lock ensures that a folder has only one
// Writer at a time.
package runfile
