package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"moontide/trace"
)

// errLeftOut says that a line is no request. Its parser has noted why.
var errLeftOut = errors.New("not a request")

// lineParser reads the lines of a format that has a request a line.
type lineParser interface {
	read(line []byte, r *trace.Request) error
	end() // after the last line; may be called more than once
}

// lines is the source of such a format.
type lines struct {
	in     *Text
	name   string
	format Format
	parser lineParser
	ended  bool
}

func (l *lines) Line() int { return l.in.Number() }

func (l *lines) Close() error { return l.in.Close() }

func (l *lines) Read(r *trace.Request) error {
	for {
		line, err := l.in.Line()
		if err == io.EOF {
			if !l.ended {
				l.ended = true
				l.parser.end()
			}
			return io.EOF
		}
		if err == nil {
			if len(line) == 0 {
				continue
			}
			err = l.parser.read(line, r)
		}
		switch {
		case err == nil:
			return nil
		case err == errLeftOut:
			continue
		}
		return &trace.RowError{File: l.name, Line: l.in.Number(), Err: mixed(err, line, l.format)}
	}
}

// mixed adds to what is wrong with a line that it is one of another format.
func mixed(err error, line []byte, f Format) error {
	other := Detect(line)
	if other == f || other == Mooncake && (f == AIPerf || !isNative(line)) { // AIPerf has native rows
		return err
	}
	return fmt.Errorf("a row of %s among those of %s: %w", named(other), named(f), err)
}

func isNative(line []byte) bool {
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	keys := headKeys(line)
	return (keys["input_length"] || keys["input_tokens"]) && !keys["chat_id"] && !keys["parent_chat_id"]
}

// native reads the lines of moontide's own format.
type native struct{ told bool } // that it is, by the caller

func (n native) read(line []byte, r *trace.Request) error {
	err := ParseRow(line, r)
	if err == nil && !n.told && bytes.Contains(r.Extra, []byte(`"parent_chat_id"`)) && Detect(line) == Bailian {
		return fmt.Errorf("its times are seconds and its ids those of single blocks: %s", Quote(line))
	}
	if IsMissing(err, "output_length") {
		return fmt.Errorf("%w (--format %s takes such rows, with the length 0 and a mark)", err, AIPerf)
	}
	return err
}

func (native) end() {}
