// Package http1test provides connections for HTTP tests: a scripted one ([Script]), and
// an in-memory listener ([Pipes]).
package http1test

import (
	"io"
	"net"
	"sync"
	"time"
)

// Script is a connection whose reads return one piece each, and io.EOF after the
// last. Writes succeed.
type Script struct {
	net.Conn
	Pieces []string
	OnRead func(piece int) // called before each read; may be nil

	// What happened: the number of pieces read, the times of writes, and Close.
	Reads  int
	Wrote  []time.Time
	Closed bool

	mu       sync.Mutex
	deadline time.Time
}

// Read implements [net.Conn].
func (s *Script) Read(p []byte) (int, error) {
	if s.Reads == len(s.Pieces) {
		return 0, io.EOF
	}
	if s.OnRead != nil {
		s.OnRead(s.Reads)
	}
	n := copy(p, s.Pieces[s.Reads])
	if s.Pieces[s.Reads] = s.Pieces[s.Reads][n:]; s.Pieces[s.Reads] == "" {
		s.Reads++
	}
	return n, nil
}

// Write implements [net.Conn].
func (s *Script) Write(p []byte) (int, error) {
	s.Wrote = append(s.Wrote, time.Now())
	return len(p), nil
}

// SetDeadline implements [net.Conn].
func (s *Script) SetDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = at
	return nil
}

// Deadline returns the deadline that was set last.
func (s *Script) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadline
}

// Close implements [net.Conn].
func (s *Script) Close() error {
	s.Closed = true
	return nil
}
