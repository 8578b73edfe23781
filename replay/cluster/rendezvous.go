package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// lead starts the leader.
func (m *Member) lead() (err error) {
	if m.Token == "" {
		if m.token, err = lockMeeting(m.Dir); err != nil {
			return err
		}
	}
	ln, err := m.listen()
	if err != nil {
		m.end()
		return fmt.Errorf("meeting the other parts: %w", err)
	}
	if m.token != nil {
		m.Token = newID()
		if err := (meeting{addresses(ln, m.Address), m.Token}).write(m.token); err != nil {
			ln.Close()
			m.end()
			return err
		}
	}
	m.server = serve(ln, newLeader(m.Of, m.Clock(), m.Config), m.Config)
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	m.Address = ln.Addr().String()
	if host, _, _ := net.SplitHostPort(m.Address); net.ParseIP(host).IsUnspecified() {
		m.Address = net.JoinHostPort("127.0.0.1", port)
	}
	return nil
}

// listen listens on all interfaces, for a name or an address may be that of a proxy, unless
// all parts are on this machine.
func (m *Member) listen() (net.Listener, error) {
	if m.Address == "" && m.OneMachine {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	if m.Address == "" {
		return net.Listen("tcp", ":0")
	}
	host, port, err := net.SplitHostPort(m.Address)
	if ip := net.ParseIP(host); err != nil || host == "localhost" || ip != nil && ip.IsLoopback() {
		return net.Listen("tcp", m.Address)
	}
	return net.Listen("tcp", ":"+port)
}

// addresses returns where a listener can be reached, the likeliest first.
func addresses(ln net.Listener, given string) (all []string) {
	if given != "" {
		return []string{given}
	}
	at := ln.Addr().(*net.TCPAddr)
	if !at.IP.IsUnspecified() {
		return []string{at.String()}
	}
	add := func(host string) { all = append(all, net.JoinHostPort(host, fmt.Sprint(at.Port))) }
	if host, err := os.Hostname(); err == nil {
		add(host)
	}
	local, _ := net.InterfaceAddrs()
	for _, a := range local {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLinkLocalUnicast() && !ip.IP.IsLoopback() {
			add(ip.IP.String())
		}
	}
	return append(all, net.JoinHostPort("127.0.0.1", fmt.Sprint(at.Port)))
}

// arrive reports to the leader until it answers or Timeout has passed.
func (m *Member) arrive(ctx context.Context) error {
	begun := m.Clock()
	said := begun.Add(Silence - sayMissing)
	for {
		err := m.client.find()
		if err == nil {
			err = m.send(ctx, 0)
		}
		var refused *refusal
		switch now := m.Clock(); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused):
			return fmt.Errorf("meeting part 1: %w", refused)
		case now.Sub(begun) >= m.Timeout:
			return fmt.Errorf("part %d of %d did not reach part 1 within %v: %w", m.Number, m.Of, m.Timeout, err)
		case now.Sub(said) >= sayMissing:
			said = now
			m.Message(fmt.Sprintf("waiting for part 1: %v", err))
		}
		select {
		case <-time.After(tickTime):
		case <-ctx.Done():
		}
	}
}
