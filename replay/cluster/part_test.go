package cluster

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"moontide/replay/runfile"
	"moontide/trace"
)

// joinAll runs n parts, each in a goroutine, and returns their errors.
func joinAll(t *testing.T, n int, change func(c *Config), part func(m *Part) error) []error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	errs := make([]error, n)
	var parts sync.WaitGroup
	for i := range n {
		parts.Go(func() {
			c := Config{Number: i + 1, Of: n, Dir: dir, OneMachine: true, Version: "1", Timeout: 20 * time.Second}
			change(&c)
			m, err := Join(t.Context(), c)
			if err == nil {
				err = part(m)
				m.Close(err)
			}
			errs[i] = err
		})
	}
	parts.Wait()
	return errs
}

// Parts with clocks that differ start at one instant and know the difference.
func TestPartsStartTogether(t *testing.T) {
	skews := []time.Duration{0, 250 * time.Millisecond, -3 * time.Second, time.Hour}
	var mu sync.Mutex
	var starts []time.Time
	runs := map[string]bool{}
	errs := joinAll(t, len(skews), func(c *Config) {
		skew, steady := skews[c.Number-1], steadyClock()
		c.Clock = func() time.Time { return steady().Add(skew) }
	}, func(m *Part) error {
		if _, err := m.Agree(t.Context(), []Fact{{"the trace", "a"}}, Progress{}); err != nil {
			return err
		}
		part, start, err := m.Begin(t.Context())
		if err != nil {
			return err
		}
		m.ClockAfter(t.Context(), &part.Clock)
		if off := math.Abs(part.Clock.Before.OffsetMS - trace.MS(skews[0]-skews[m.Number-1])); off > part.Clock.Before.BoundMS+1 {
			t.Errorf("part %d: its clock is %v ms off, measured %v ms +- %v", m.Number, trace.MS(skews[0]-skews[m.Number-1]), part.Clock.Before.OffsetMS, part.Clock.Before.BoundMS)
		}
		mu.Lock()
		starts, runs[part.RunID] = append(starts, start), true
		mu.Unlock()
		return m.End(t.Context(), runfile.Part{Clock: part.Clock}, "")
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 {
		t.Errorf("the parts have run ids %v", runs)
	}
	for _, s := range starts {
		if apart := s.Sub(starts[0]).Abs(); apart > time.Second { // bounded by round trips; the skews are larger
			t.Errorf("starts are %v apart", apart)
		}
	}
}

// Only what part 1 of a killed run left is replaced.
func TestForeignTokenFile(t *testing.T) {
	for text, own := range map[string]bool{
		"": true, "{\"address\":\"h:1\",\"token\":\"x\"}\n": true, "{}\n": false, "null": false, `{"token":"mine"}`: false,
		"{\"token\":\"x\",\"address\":\"h:1\"}\n": false, "{\"address\":\"h:1\",\"token\":\"x\"}\nmine": false,
	} {
		dir := filepath.Join(t.TempDir(), "run")
		os.WriteFile(tokenFile(dir), []byte(text), 0o600)
		f, err := meeting{}.write(dir)
		if f.Close(); own != (err == nil) {
			t.Errorf("%q: %v", text, err)
		}
		if got, _ := os.ReadFile(tokenFile(dir)); !own && string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// The token file is for the user only, exists while the run does, and a second part 1
// is refused. A wrong token is refused.
func TestToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	c := Config{Number: 1, Of: 2, Dir: dir, OneMachine: true, Timeout: 100 * time.Millisecond}
	m, err := Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(tokenFile(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token file: %v, %v", info, err)
	}
	if _, err := Join(t.Context(), c); err == nil || !strings.Contains(err.Error(), "another part 1") {
		t.Errorf("a second part 1: %v", err)
	}
	wrong := Config{Number: 2, Of: 2, Dir: dir, Address: m.Address, Token: "guess"}
	if _, err := Join(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "wrong token") {
		t.Errorf("a wrong token: %v", err)
	}
	m.Close(nil)
	if _, err := os.Stat(tokenFile(dir)); err == nil {
		t.Error("the token file outlives the run")
	}
}

func TestUnreachablePart1(t *testing.T) {
	_, err := Join(t.Context(), Config{Number: 2, Of: 2, Dir: filepath.Join(t.TempDir(), "run"), Timeout: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "did not reach part 1 within 1ms") || !strings.Contains(err.Error(), TokenVariable) {
		t.Errorf("without part 1: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Join(ctx, Config{Number: 2, Of: 2, Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// Records that are not on a shared folder are passed to part 1.
func TestRecordsArePassed(t *testing.T) {
	shared, own := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(filepath.Join(own, "part-2"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{runfile.RequestsFile, runfile.RunFile} {
		if err := os.WriteFile(filepath.Join(own, "part-2", name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	errs := joinAll(t, 2, func(c *Config) {
		c.Token, c.Dir = "secret", shared
		if c.Address = address; c.Number == 2 {
			c.Dir = own
		}
	}, func(m *Part) error {
		if _, err := m.Agree(t.Context(), nil, Progress{}); err != nil {
			return err
		}
		part, _, err := m.Begin(t.Context())
		if err != nil {
			return err
		}
		return m.End(t.Context(), part, "")
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{runfile.RequestsFile, runfile.RunFile} {
		if text, err := os.ReadFile(filepath.Join(shared, "part-2", name)); err != nil || string(text) != name {
			t.Errorf("%s of part 2: %q, %v", name, text, err)
		}
	}
}
