package trace

import "fmt"

// RowError is what is wrong with one line of a trace.
type RowError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the error without the place.
func (e *RowError) Unwrap() error { return e.Err }

// ReadError is a failure of a file, not of a row: nothing behind it is read.
type ReadError struct{ Err error }

func (e ReadError) Error() string { return "reading: " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e ReadError) Unwrap() error { return e.Err }
