package server

import (
	"moontide/replay/sim/engine"
)

// GarbageEvent is what a fault inserts.
const GarbageEvent = garbage

// total is the state of a server's only engine.
func (s *Server) total() engine.Stats { return s.stats()[0] }
