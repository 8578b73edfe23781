package trace

import "fmt"

// RowError is an error in one line of a trace.
type RowError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the error without file and line.
func (e *RowError) Unwrap() error { return e.Err }

// ReadError is a failure to read a file. Nothing after it can be read.
type ReadError struct{ Err error }

func (e ReadError) Error() string { return "reading: " + e.Err.Error() }

// Unwrap returns the cause.
func (e ReadError) Unwrap() error { return e.Err }
