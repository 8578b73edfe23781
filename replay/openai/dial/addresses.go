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
	// silence is how long an address that did not answer in that time is tried last.
	silence = time.Minute
)

// Addresses opens connections to one host name and spreads them over its addresses
// in turn. It tries all addresses, IPv4 and IPv6, before it fails. Connections are
// spread over the family that was the first to connect: a server with both has an
// address in each. An address that does not answer in a second is tried last
// for a minute. Addresses is safe for concurrent use; its fields must not change after
// the first call.
type Addresses struct {
	// Lookup returns the addresses of a name; nil means that of net.DefaultResolver.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial   Func // nil means that of a net.Dialer

	mu     sync.Mutex
	found  []netip.Addr             // by the last lookup
	until  time.Time                // of their use
	used   netip.Addr               // the first that connected: it decides the family
	next   int                      // the number of connections so far
	silent map[netip.Addr]time.Time // until when an address is tried last
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
	conn, err := a.tryAll(ctx, network, a.inTurn(found), port)
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.until = time.Time{} // the service may have moved
	}
	return conn, err
}

// Spread returns the number of addresses that connections take in turn, 0 before the
// first connection to a name.
func (a *Addresses) Spread() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, ip := range a.found {
		if a.used.IsValid() && ip.Is4() == a.used.Is4() && a.silent[ip].IsZero() {
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
// family, beginning with the next in turn, then the others, then silent ones. Until a
// connection succeeds, it is the resolver's order, which prefers what the machine can
// reach.
func (a *Addresses) inTurn(found []netip.Addr) []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, now := a.next, time.Now()
	a.next++
	var same, others, silent []netip.Addr
	for _, ip := range found {
		switch {
		case now.Before(a.silent[ip]):
			silent = append(silent, ip)
		case a.used.IsValid() && ip.Is4() != a.used.Is4():
			others = append(others, ip)
		default:
			same = append(same, ip)
		}
	}
	if a.used.IsValid() && len(same) > 0 {
		slices.SortFunc(same, netip.Addr.Compare) // a resolver's order may change
		first := next % len(same)
		same = slices.Concat(same[first:], same[:first])
	}
	order := slices.Concat(same, others, silent)
	if _, was := a.silent[order[0]]; was {
		a.silent[order[0]] = now.Add(silence) // this connection alone tries it again
	}
	return order
}

// tried records whether an address connected or was silent. The first that connects
// decides the family.
func (a *Addresses) tried(ip netip.Addr, connected bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !connected {
		if a.silent == nil {
			a.silent = map[netip.Addr]time.Time{}
		}
		a.silent[ip] = time.Now().Add(silence)
		return
	}
	delete(a.silent, ip)
	if !a.used.IsValid() {
		a.used = ip
	}
}

// tryAll tries addresses in order until one connects. All but the last have a limit of
// time. The error is that of the first failure.
func (a *Addresses) tryAll(ctx context.Context, network string, addresses []netip.Addr, port string) (net.Conn, error) {
	var failure error
	for i, ip := range addresses {
		trying, cancel := ctx, context.CancelFunc(func() {})
		if i < len(addresses)-1 {
			trying, cancel = context.WithTimeout(ctx, attemptTime)
		}
		conn, err := a.dial(trying, network, net.JoinHostPort(ip.String(), port))
		timedOut := trying.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || timedOut {
			a.tried(ip, err == nil)
		}
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
