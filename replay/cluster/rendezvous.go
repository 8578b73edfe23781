package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"moontide/trace/atomicfile"
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
		return fmt.Errorf("serving the other parts: %w", err)
	}
	if m.token != nil {
		m.Token = newID()
		if err := (meeting{cmp.Or(m.Address, ln.Addr().String()), m.Token}).write(m.token); err != nil {
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

// listen listens on the address given, else on that of this machine's name or of its
// route to others, on loopback if all parts are on this machine. If the address given is
// that of something else, such as a proxy, it listens on all addresses and says so.
func (m *Member) listen() (net.Listener, error) {
	host, port, _ := net.SplitHostPort(m.Address)
	at, ip := m.Address, net.ParseIP(host)
	switch {
	case at == "" && m.OneMachine:
		at = "127.0.0.1:0"
	case at == "":
		at = net.JoinHostPort(ownAddress(), "0")
	case host != "" && host != "localhost" && !canListen(ip):
		if ip = addressOf(host); ip == nil {
			m.Message(fmt.Sprintf("%s is not an address of this machine: listening on all of its addresses", m.Address))
			at = ":" + port
		} else {
			at = net.JoinHostPort(ip.String(), port)
		}
	}
	return net.Listen("tcp", at)
}

// ownAddress returns the address at which others are likely to reach this machine.
func ownAddress() string {
	if name, err := os.Hostname(); err == nil {
		if ip := addressOf(name); ip != nil {
			return ip.String()
		}
	}
	route, err := net.Dial("udp", "192.0.2.1:9") // sends nothing
	if err != nil {
		return "127.0.0.1"
	}
	defer route.Close()
	return route.LocalAddr().(*net.UDPAddr).IP.String()
}

// addressOf returns the address of this machine that a name stands for, nil if there is
// none. Many machines have a loopback address for their own name, which is of no use.
func addressOf(name string) net.IP {
	found, _ := net.LookupIP(name) // an unknown name has none
	for _, ip := range found {
		if !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && canListen(ip) {
			return ip
		}
	}
	return nil
}

// canListen reports whether an address is this machine's.
func canListen(ip net.IP) bool {
	if ip == nil {
		return false
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err == nil {
		ln.Close()
	}
	return err == nil
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
			return fmt.Errorf("joining part 1: %w", refused)
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

// TokenSuffix is appended to the run's folder to name the token file. It has the address of
// part 1 and the job's token, only the user may read it, and it exists during the run.
const TokenSuffix = ".token"

// TokenVariable is the environment variable with the token, if the parts share no
// folder.
const TokenVariable = "MOONTIDE_TOKEN"

// meeting is the content of the token file.
type meeting struct {
	Address string `json:"address"` // HOST:PORT
	Token   string `json:"token"`
}

// newID returns a random name.
func newID() string { return rand.Text() }

func tokenFile(dir string) string { return filepath.Clean(dir) + TokenSuffix }

// lockMeeting makes the token file, still without an address, which only one process
// can do at a time: the file of one that was killed is replaced.
func lockMeeting(dir string) (*os.File, error) {
	path := tokenFile(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the token file: %w", err)
	}
	f, err := atomicfile.New(path, 0o600)
	made := err == nil
	if errors.Is(err, fs.ErrExist) {
		f, err = atomicfile.Open(path, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("making the token file: %w", err)
	}
	switch {
	case !atomicfile.Lock(f):
		err = fmt.Errorf("there is another part 1 of this run: it has locked %s", path)
	case !made:
		if _, err = parseMeeting(f); err == io.EOF { // of one killed early
			err = nil
		} else if err != nil {
			err = fmt.Errorf("making the token file: %s exists and is something else: choose another folder for the run", path)
		}
	}
	if err == nil {
		if err = errors.Join(f.Chmod(0o600), meeting{}.write(f)); err != nil && made {
			err = errors.Join(err, atomicfile.Remove(f))
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// write writes the token file. Readers ignore one that is not complete.
func (m meeting) write(f *os.File) error {
	text, err := json.Marshal(m)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(append(text, '\n'), 0)
	}
	if err != nil {
		return fmt.Errorf("writing the token file: %w", err)
	}
	return nil
}

// readMeeting reads the token file.
func readMeeting(dir string) (m meeting, err error) {
	f, err := atomicfile.Open(tokenFile(dir), os.O_RDONLY, 0)
	if err != nil {
		return m, err
	}
	defer f.Close()
	if m, err = parseMeeting(f); err != nil || m.Token == "" {
		return m, fmt.Errorf("%s is not complete", tokenFile(dir))
	}
	return m, nil
}

// parseMeeting parses a token file.
func parseMeeting(f *os.File) (m meeting, err error) {
	text, err := io.ReadAll(io.LimitReader(f, maxMessage))
	if err != nil {
		return m, err
	}
	if len(text) == 0 {
		return m, io.EOF
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if own, err := json.Marshal(m); err != nil || string(own)+"\n" != string(text) {
		return m, errors.New("another program wrote it")
	}
	return m, nil
}
