package trace

import (
	"context"
	"fmt"
	"io"
)

// Rows reads a trace into the caller's memory. Read reads the next row into r,
// reusing the array of r.HashIDs, or returns io.EOF.
type Rows interface {
	Read(r *Request) error
}

// FromRows returns the remaining rows, each with its own memory. It can be ranged
// over once.
func FromRows(rows Rows) Requests {
	var slab []uint64 // shared by small rows, to save allocations
	return stream(rows, func(r Request) Request {
		n := len(r.HashIDs)
		if n == 0 {
			return r
		}
		if len(slab) < n {
			slab = make([]uint64, max(n, 4096))
		}
		copy(slab, r.HashIDs)
		r.HashIDs, slab = slab[:n:n], slab[n:]
		return r
	})
}

// Borrow returns the remaining rows without copying: HashIDs is overwritten by the
// next row. It can be ranged over once.
func Borrow(rows Rows) Requests {
	return stream(rows, func(r Request) Request { return r })
}

func stream(rows Rows, as func(Request) Request) Requests {
	var r Request
	return func(yield func(Request, error) bool) {
		for {
			switch err := rows.Read(&r); err {
			case nil:
				if !yield(as(r), nil) {
					return
				}
			case io.EOF:
				return
			default:
				yield(Request{}, err)
				return
			}
		}
	}
}

// transform passes each row to a function that may change it and reports whether to
// keep it. begin returns that function anew for each range over the result.
func transform(reqs Requests, begin func() func(*Request) bool) Requests {
	return func(yield func(Request, error) bool) {
		keep := begin()
		var row Request
		for r, err := range reqs {
			if err == nil {
				row = r
				if !keep(&row) {
					continue
				}
				r = row
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// change passes each row to a function that changes it.
func change(reqs Requests, f func(*Request)) Requests {
	return transform(reqs, func() func(*Request) bool {
		return func(r *Request) bool { f(r); return true }
	})
}

// Tap calls see with each row that passes.
func Tap(reqs Requests, see func(Request)) Requests {
	return change(reqs, func(r *Request) { see(*r) })
}

// Checked yields the rows until check returns an error, and then that error.
func Checked(reqs Requests, check func(Request) error) Requests {
	return func(yield func(Request, error) bool) {
		for r, err := range reqs {
			if err == nil {
				err = check(r)
			}
			if err != nil {
				yield(Request{}, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Until yields the stream until ctx ends, and then ctx's error.
func Until(ctx context.Context, reqs Requests) Requests {
	return Checked(reqs, func(Request) error { return ctx.Err() })
}

// Collect returns the rows of a stream up to its end or first error.
func Collect(reqs Requests) ([]Request, error) {
	var rows []Request
	for r, err := range reqs {
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// FromSlice returns a stream of rows in memory.
func FromSlice(rows []Request) Requests {
	return func(yield func(Request, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// InOrder ends the stream with an error if a row arrives before its predecessor.
func InOrder(reqs Requests) Requests {
	return func(yield func(Request, error) bool) {
		row, last := 0, 0.0
		Checked(reqs, func(r Request) error {
			row++
			switch {
			case !r.Timestamp.Set:
			case r.Timestamp.Value < last:
				return fmt.Errorf("row %d goes back in time, from %s to %s ms: sort the trace first", row, AppendMS(nil, last), AppendMS(nil, r.Timestamp.Value))
			default:
				last = r.Timestamp.Value
			}
			return nil
		})(yield)
	}
}
