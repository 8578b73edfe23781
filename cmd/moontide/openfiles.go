package main

import "fmt"

// otherFiles are the files that a run has open besides the connections of its
// requests in flight: 64 connections that are opened ahead, the record, and
// what the process needs.
const otherFiles = 128

// checkOpenFiles compares the system's limit on open files (0: there is none)
// with what a run may need: a connection for each request in flight, two where
// the endpoint is in this process. A limit on requests that can never be
// reached is an error; whether a run without one gets so far depends on the
// server, so that is a note.
func checkOpenFiles(limit, rows, maxConcurrency int, embedded bool) (notes []string, err error) {
	most, each := rows, 1
	if maxConcurrency > 0 {
		most = min(rows, maxConcurrency)
	}
	if embedded {
		each = 2
	}
	room := max(limit-otherFiles, 0) / each
	switch {
	case limit == 0 || most <= room:
		return nil, nil
	case maxConcurrency > 0:
		return nil, fmt.Errorf("--max-concurrency %d is more than the system's limit of %d open files (ulimit -n) allows: there is room for %d requests in flight",
			maxConcurrency, limit, room)
	}
	return []string{fmt.Sprintf("the system's limit of %d open files (ulimit -n) leaves room for %d requests in flight, and the trace has %d: if the server falls behind, some will fail",
		limit, room, rows)}, nil
}
