package results

import (
	"cmp"

	"moontide/trace"
	"moontide/trace/format"
)

// WriteTrace writes a trace file.
func WriteTrace(path string, rows []trace.Request) error {
	w, err := format.Create(path)
	if err != nil {
		return err
	}
	if _, err := w.WriteAll(trace.FromSlice(rows)); err != nil {
		w.Discard()
		return err
	}
	return w.Close()
}

// ReadTrace reads a trace in any format.
func ReadTrace(path string) ([]trace.Request, error) {
	r, err := format.Open(path, format.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return trace.Collect(r.Requests())
}

// ByTime compares rows by their times.
func ByTime(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) }
