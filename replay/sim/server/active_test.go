package server

import (
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay/sim/engine"
)

// With a time scale of 2 everything takes half the time.
func TestTimeScale(t *testing.T) {
	for _, scale := range []float64{0, 1, 2, 0.25, 1000} {
		synctest.Test(t, func(t *testing.T) {
			s := serverOf(t, Config{
				TimeScale:  scale,
				Deployment: engine.Deployment{Engine: engine.Config{Costs: engine.Costs{PrefillToken: engine.Second, Sequence: 8 * engine.Second}}},
			})
			if scale == 0 {
				scale = 1
			}
			stream := openStream(t, s, &chatAPI, 3)
			start := time.Now()
			p := make([]byte, 4096)
			for _, want := range []time.Duration{3 * time.Second, 11 * time.Second, 19 * time.Second} {
				if n, err := stream.Read(p); err != nil || tokenEvents(p[:n]) != 1 {
					t.Fatalf("%d bytes, %v", n, err)
				}
				if at := time.Since(start); at != time.Duration(float64(want)/scale) {
					t.Errorf("scale %v: a token at %v, want %v/%v", scale, at, want, scale)
				}
			}
			synctest.Wait()
		})
	}
}

func TestBadTimeScale(t *testing.T) {
	for _, scale := range []float64{-1, 1e-4, 1e4, 1e300, math.Inf(1), math.NaN()} {
		if _, err := New(Config{TimeScale: scale}); err == nil || !strings.HasPrefix(err.Error(), "time scale must be from 0.001 to 1000, got ") {
			t.Errorf("%v: %v", scale, err)
		}
	}
}

// An idle server does not wake up.
func TestIdleServerSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{Costs: engine.Costs{Step: engine.Second}})
		stream := openStream(t, s, &chatAPI, 3)
		for at := range 3 {
			stream.read(t, s, time.Duration(at+1)*time.Second, 1)
		}
		synctest.Wait()
		last := s.round
		time.Sleep(time.Hour)
		synctest.Wait()
		if s.round != last {
			t.Errorf("the loop ran at %v with nothing to do", s.round)
		}
	})
}

func TestEngineRefusal(t *testing.T) {
	s := newServer(t, engine.Config{KVBlocks: 2})
	refused := s.tooLong(activeOf(s, &chatAPI, 100, &net.TCPConn{}))
	if refused == nil || refused.status != 400 || refused.code != "context_length_exceeded" || refused.param != "messages" {
		t.Errorf("%+v", refused)
	}
	if refused := s.tooLong(activeOf(s, &chatAPI, 30, &net.TCPConn{})); refused != nil {
		t.Errorf("what fits exactly: %+v", refused)
	}
}
