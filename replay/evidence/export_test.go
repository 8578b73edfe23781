package evidence

import (
	"io"

	"moontide/replay/runfile"
)

// Parse parses a page of metrics.
func Parse(r io.Reader) (runfile.ServerFigures, error) {
	p := page{}
	if err := p.parse(r); err != nil {
		return runfile.ServerFigures{}, err
	}
	return p.figures()
}
