package server

import (
	"context"
	"fmt"
	"net"
	"time"
)

// shutdownGrace is how long Run waits for responses in flight.
const shutdownGrace = 5 * time.Second

// Run serves on ln until ctx ends, then shuts down. It closes ln.
func Run(ctx context.Context, ln net.Listener, cfg Config) error {
	s, err := New(cfg)
	if err != nil {
		ln.Close()
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	if err := s.Shutdown(grace); err != nil {
		return fmt.Errorf("shutting the endpoint down: %w", err)
	}
	return <-ended
}
