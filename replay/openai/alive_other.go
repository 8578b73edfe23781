//go:build !unix

package openai

import "net"

// alive cannot tell on this system; the idle limit of the pool has to do.
func alive(net.Conn) bool { return true }
