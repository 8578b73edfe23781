package evidence

import (
	"io"

	"moontide/replay/runfile"
)

// Parse parses a page of metrics.
func Parse(r io.Reader) (runfile.ServerFigures, error) {
	all, err := parse(r)
	if err != nil {
		return runfile.ServerFigures{}, err
	}
	return figures(all)
}
