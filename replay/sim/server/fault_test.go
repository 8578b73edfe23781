package server

import (
	"testing"
	"time"
)

func TestParseFault(t *testing.T) {
	for text, want := range map[string]Fault{
		"reset":         {Kind: Reset, Share: 1},
		"RESET:0.01":    {Kind: Reset, Share: 0.01},
		"delay":         {Kind: Delay, Share: 1, Time: time.Second},
		"delay:0.5:2ms": {Kind: Delay, Share: 0.5, Time: 2 * time.Millisecond},
		"stall:1":       {Kind: Stall, Share: 1},
		"429:1:90s":     {Kind: TooMany, Share: 1, Time: 90 * time.Second},
	} {
		if got, err := ParseFault(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "crash", "reset:", "reset:0", "reset:1.1", "reset:NaN", "reset:x", "reset:1:2s", "delay:1:", "delay:1:0s", "delay:1:2h", "delay:1:5", "stall:1:2s:3"} {
		if got, err := ParseFault(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
