package dial

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// lookupAge is how long the addresses of a name are used: a service may get new
	// ones, but ten thousand connections should not look them up ten thousand times.
	lookupAge = 5 * time.Second
	// attemptTime is how long an address is tried before the next one.
	attemptTime = time.Second
)

// Addresses opens connections to one host name and spreads them over its addresses
// in turn. It tries all addresses, IPv4 and IPv6, before it fails. Connections are
// spread over the family that was the first to connect: a server with both has an
// address in each. Addresses is safe for concurrent use; its fields must not change
// after the first call.
type Addresses struct {
	// Lookup returns the addresses of a name; nil means that of net.DefaultResolver.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial   Func // nil means that of a net.Dialer

	mu    sync.Mutex
	found []netip.Addr // by the last lookup
	until time.Time    // of their use
	used  netip.Addr   // the first that connected: it decides the family
	next  int          // the number of connections so far
}

// DialContext opens a connection.
func (a *Addresses) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if _, notIP := netip.ParseAddr(host); err != nil || notIP == nil {
		return a.dial(ctx, network, address)
	}
	found, err := a.lookup(ctx, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var addresses []string
	for _, ip := range a.inTurn(found) {
		addresses = append(addresses, net.JoinHostPort(ip.String(), port))
	}
	conn, err := a.tryAll(ctx, network, addresses)
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.until = time.Time{} // the service may have moved
		return nil, err
	}
	a.connected(conn)
	return conn, nil
}

// Spread returns the number of addresses over which connections are spread, 0 before
// the first connection to a name.
func (a *Addresses) Spread() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, ip := range a.found {
		if a.used.IsValid() && ip.Is4() == a.used.Is4() {
			n++
		}
	}
	return n
}

func (a *Addresses) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if a.Dial != nil {
		return a.Dial(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (a *Addresses) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	a.mu.Lock()
	found, until := a.found, a.until
	a.mu.Unlock()
	if time.Now().Before(until) {
		return found, nil
	}
	lookup := a.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	found, err := lookup(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	found = slices.Clone(found)
	for i, ip := range found {
		found[i] = ip.Unmap()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found, a.until = found, time.Now().Add(lookupAge)
	return found, nil
}

// inTurn returns the addresses in the order in which to try them: those of the used
// family, beginning with the next in turn, before the others. Until a connection
// succeeds, it is the resolver's order, which prefers what the machine can reach.
func (a *Addresses) inTurn(found []netip.Addr) []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.next
	a.next++
	if !a.used.IsValid() {
		return found
	}
	var same, others []netip.Addr
	for _, ip := range found {
		if ip.Is4() == a.used.Is4() {
			same = append(same, ip)
		} else {
			others = append(others, ip)
		}
	}
	if len(same) > 0 {
		slices.SortFunc(same, netip.Addr.Compare) // a resolver's order may change
		first := next % len(same)
		same = slices.Concat(same[first:], same[:first])
	}
	return append(same, others...)
}

// connected learns the family of addresses that works.
func (a *Addresses) connected(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil && !a.used.IsValid() {
		a.used = at.Addr().Unmap()
	}
}

// tryAll tries addresses in order until one connects. All but the last have a limit of
// time. The error is that of the first failure.
func (a *Addresses) tryAll(ctx context.Context, network string, addresses []string) (net.Conn, error) {
	var failure error
	for i, address := range addresses {
		trying, cancel := ctx, context.CancelFunc(func() {})
		if i < len(addresses)-1 {
			trying, cancel = context.WithTimeout(ctx, attemptTime)
		}
		conn, err := a.dial(trying, network, address)
		cancel()
		if err == nil {
			return conn, nil
		}
		if failure = cmp.Or(failure, err); ctx.Err() != nil {
			return nil, failure
		}
	}
	if len(addresses) == 1 {
		return nil, failure
	}
	return nil, fmt.Errorf("none of %d addresses answers: %w", len(addresses), failure)
}
