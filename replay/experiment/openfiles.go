package experiment

import (
	"fmt"

	"moontide/replay/listen"
)

// checkOpenFiles compares the limit on open files (0: none) with the needs of a run: a
// connection per request in flight, two if the endpoint is embedded, and others, such as
// the connections of part 1 to the other parts. A concurrency limit that cannot be reached is an error; without one, the run may need less: a note.
func checkOpenFiles(limit, others, rows, maxConcurrency int, embedded bool) (notes []string, err error) {
	most, each := rows, 1
	if maxConcurrency > 0 {
		most = min(rows, maxConcurrency)
	}
	if embedded {
		each = 2
	}
	room := max(limit-listen.OtherFiles-others, 0) / each
	switch {
	case limit == 0 || most <= room:
		return nil, nil
	case maxConcurrency > 0:
		return nil, fmt.Errorf("a maximum concurrency of %d exceeds the limit of %d open files (ulimit -n), which allows %d requests in flight",
			maxConcurrency, limit, room)
	}
	return []string{fmt.Sprintf("the limit of %d open files (ulimit -n) allows %d requests in flight, and the trace has %d: if the server falls behind, some will fail",
		limit, room, rows)}, nil
}
