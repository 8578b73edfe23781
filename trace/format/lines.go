package format

import (
	"errors"
	"fmt"
	"io"

	"moontide/trace"
)

// errLeftOut means that a line holds no request. The parser has noted why.
var errLeftOut = errors.New("not a request")

// lines is the source of a format with one request a line, which parse parses.
type lines struct {
	textFiles
	parse func(line []byte, r *trace.Request) error
}

func (l *lines) Read(r *trace.Request) error {
	for {
		line, err := l.files[0].text.Line()
		if err == io.EOF {
			return err
		}
		l.line = l.files[0].text.Number()
		if err == nil {
			err = l.parse(line, r)
		}
		switch err {
		case nil:
			return nil
		case errLeftOut:
			continue
		}
		if l.line == 1 && errors.Is(err, errNotObject) {
			err = fmt.Errorf("%w; want JSON lines, or CSV with the header of azure, burstgpt or vidur", err)
		}
		return &trace.RowError{File: l.name, Line: l.line, Err: otherFormat(err, line, l.format)}
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
