//go:build !unix

package http1

import "net"

// alive always reports true: this system has no way to check. Only the pool's idle
// limit protects.
func alive(net.Conn) bool { return true }
