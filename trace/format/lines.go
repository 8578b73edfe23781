package format

import (
	"errors"
	"fmt"
	"io"

	"moontide/trace"
)

// errLeftOut means that a line holds no request. The parser has noted why.
var errLeftOut = errors.New("not a request")

// lines is the source of a format whose requests are in order, usually one a line.
type lines struct {
	textFiles
	next  units
	parse func(unit []byte, r *trace.Request) error // parses a unit
	place string                                    // begins errors of parse; "" if their line is enough
}

func (l *lines) Read(r *trace.Request) error {
	for {
		unit, err := l.next()
		if err == io.EOF {
			return err
		}
		l.line = l.files[0].text.Number()
		if err == nil {
			switch err = l.parse(unit, r); {
			case err == nil:
				return nil
			case err == errLeftOut:
				continue
			case errors.Is(err, errNoOutput):
				err = fmt.Errorf("%w (format %s accepts such rows, with length 0 and a mark)", err, AIPerf)
			case l.line == 1 && err == errNotObject && l.format != ShareGPT:
				err = fmt.Errorf("%w; want JSON lines, or CSV with the header of azure, burstgpt or vidur", err)
			}
			err = fmt.Errorf("%s%w", l.place, otherFormat(err, unit, l.format))
		}
		return &trace.RowError{File: l.name, Line: l.line, Err: err}
	}
}

// otherFormat extends a line's error if the line is in another format.
func otherFormat(err error, line []byte, f Format) error {
	other := detect(line)
	if other == "" || other == f || f == OpenAILog || other == Mooncake && f == AIPerf { // AIPerf has native rows
		return err
	}
	return fmt.Errorf("a row of %s among those of %s: %w", named(other), named(f), err)
}
