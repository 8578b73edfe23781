//go:build !unix

package http1

import "net"

// alive cannot tell on this system: only the pool's time limit protects.
func alive(net.Conn) bool { return true }
