package live

import (
	"io"
	"sync"
	"time"
)

const (
	firstBuffer = 64 << 10               // bytes; grows to
	maxBuffered = 4 << 20                // bytes of lines that wait for a slow reader
	writeEvery  = 100 * time.Millisecond // so that adding a line wakes nobody
)

// Events writes lines from another goroutine, so that a slow reader does not delay
// the caller. Lines that do not fit into a buffer of 4 MiB are dropped and counted.
type Events struct {
	mu      sync.Mutex
	waiting []byte
	dropped int
	err     error // of writing, which has ended

	closing, done chan struct{}
}

// NewEvents starts to write lines to w, at most a tenth of a second late.
func NewEvents(w io.Writer) *Events {
	e := &Events{waiting: make([]byte, 0, firstBuffer), closing: make(chan struct{}), done: make(chan struct{})}
	go e.run(w)
	return e
}

// Add adds a whole line.
func (e *Events) Add(line []byte) {
	e.mu.Lock()
	if e.err != nil || len(e.waiting)+len(line) > maxBuffered {
		e.dropped++
	} else {
		e.waiting = append(e.waiting, line...)
	}
	e.mu.Unlock()
}

func (e *Events) run(w io.Writer) {
	defer close(e.done)
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	writing := make([]byte, 0, firstBuffer)
	for closing := false; !closing; {
		select {
		case <-ticker.C:
		case <-e.closing:
			closing = true
		}
		e.mu.Lock()
		e.waiting, writing = writing[:0], e.waiting
		e.mu.Unlock()
		if len(writing) == 0 {
			continue
		}
		if _, err := w.Write(writing); err != nil {
			e.mu.Lock()
			e.err = err
			e.mu.Unlock()
			return
		}
	}
}

// Close waits until all lines are written. It returns the number of lines that were
// dropped, and the error of writing. It must be called once, after the last Add.
func (e *Events) Close() (dropped int, err error) {
	close(e.closing)
	<-e.done
	return e.dropped, e.err
}
