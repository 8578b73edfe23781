package doc

import (
	"math"
	"testing"
)

func TestThousandsSeparators(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 7: "7.00", 999: "999.00", 1000: "1,000.00", 123456.789: "123,456.79", -1234: "-1,234.00", 1e9: "1,000,000,000.00",
	} {
		if got := Fixed(v, 2); got != want {
			t.Errorf("Fixed(%v, 2) = %s, want %s", v, got, want)
		}
	}
	if got := Fixed(math.Inf(1), 2) + Fixed(math.Inf(-1), 2) + Fixed(math.NaN(), 2); got != "+Inf-InfNaN" {
		t.Errorf("not numbers are %s", got)
	}
	if got := Count(1, "block") + Count(0, "block") + Count(1000, "block"); got != "1 block0 blocks1,000 blocks" {
		t.Errorf("Count: %s", got)
	}
	if got := Int(-1234567); got != "-1,234,567" {
		t.Errorf("Int(-1234567) = %s", got)
	}
}

func TestDuration(t *testing.T) {
	for ms, want := range map[float64]string{0: "0", 0.0123: "12.3 µs", 45.64: "45.6 ms", 1255.27: "1.26 s", 90_000: "1.5 min"} {
		if got := Duration(ms); got != want {
			t.Errorf("Duration(%v) = %s, want %s", ms, got, want)
		}
	}
}
