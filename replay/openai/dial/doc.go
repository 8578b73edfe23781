// Package dial opens connections to a server: to each address of a host name in turn
// ([Addresses]), or through a proxy ([Proxy]). Each has a
// DialContext like that of a net.Dialer:
//
//	addresses := new(dial.Addresses)
//	proxy := &dial.Proxy{URL: u, Tunnel: true, Dial: addresses.DialContext}
//	conn, err := proxy.DialContext(ctx, "tcp", "example.com:443")
//
// Errors name the proxy, without its credentials.
package dial

import (
	"context"
	"net"
)

// Func opens a connection, like DialContext of a net.Dialer.
type Func func(ctx context.Context, network, address string) (net.Conn, error)
