package figure

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTickLabels(t *testing.T) {
	number, bytes := Axis{}, Axis{Quantity: Bytes}
	percent, duration := Axis{Quantity: Percent}, Axis{Quantity: Duration}
	logarithmic := func(a Axis) Axis { a.Log = true; return a }
	const gib, ms = 1 << 30, 1e-3
	for _, test := range []struct {
		name   string
		axis   Axis
		lo, hi float64
		room   int
		want   string
	}{
		{"unit interval", number, 0, 1, 5, "0|0.2|0.4|0.6|0.8|1.0"},
		{"hundreds", number, 0, 1900, 5, "0|500|1000|1500"},
		{"thousands", number, 0, 19_000, 4, "0|5k|10k|15k"},
		{"millions", number, 0, 2.4e6, 5, "0|0.5M|1.0M|1.5M|2.0M"},
		{"around zero", number, -3, 3, 4, "−2|0|2"},
		{"close together", number, 100.001, 100.0045, 4, "100.001|100.002|100.003|100.004"},
		{"tiny", number, 0, 4e-12, 4, "0|1e−12|2e−12|3e−12|4e−12"},
		{"enormous", number, 0, 3e20, 4, "0|1e20|2e20|3e20"},
		{"decades", logarithmic(number), 1, 131_072, 9, "1|10|100|1000|10k|100k"},
		{"few decades", logarithmic(number), 2, 130, 9, "2|5|10|20|50|100"},
		{"many decades", logarithmic(number), 1e-6, 1e12, 7, "1e−6|0.001|1|1000|1M|1G|1T"},
		{"within a decade", logarithmic(number), 11, 14, 4, "11|12|13|14"},
		{"gibibytes", bytes, 0, 100 * gib, 5, "0|20 GiB|40 GiB|60 GiB|80 GiB|100 GiB"},
		{"bytes", bytes, 0, 5, 9, "0|1 B|2 B|3 B|4 B|5 B"},
		{"log bytes", logarithmic(bytes), gib / 4, 2048 * gib, 8, "256 MiB|1 GiB|4 GiB|16 GiB|64 GiB|256 GiB|1 TiB"},
		{"percent", percent, 0, 1, 5, "0|20 %|40 %|60 %|80 %|100 %"},
		{"permille", percent, 0, 0.004, 4, "0|0.1 %|0.2 %|0.3 %|0.4 %"},
		{"log percent", logarithmic(percent), 0.0001, 1, 5, "0.01 %|0.1 %|1 %|10 %|100 %"},
		{"milliseconds", duration, 0, 45 * ms, 5, "0|10 ms|20 ms|30 ms|40 ms"},
		{"around a second", duration, 0, 1.2, 6, "0|0.2 s|0.4 s|0.6 s|0.8 s|1.0 s|1.2 s"},
		{"seconds", duration, 0, 100, 5, "0|20 s|40 s|60 s|80 s|100 s"},
		{"an hour", duration, 0, 3600, 6, "0|10 min|20 min|30 min|40 min|50 min|60 min"},
		{"a day", duration, 0, 86_400, 8, "0|3 h|6 h|9 h|12 h|15 h|18 h|21 h|24 h"},
		{"a month", duration, 0, 30 * 86_400, 6, "0|5 d|10 d|15 d|20 d|25 d|30 d"},
		{"log duration", logarithmic(duration), ms, 86_400, 12, "1 ms|10 ms|100 ms|1 s|10 s|1 min|10 min|1 h|6 h|1 d"},
		{"small log duration", logarithmic(duration), ms, 86_400, 5, "1 ms|1 s|1 min|1 h|1 d"},
		{"short log duration", logarithmic(duration), 5 * ms, 0.3, 9, "5 ms|10 ms|20 ms|50 ms|100 ms|200 ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var labels []string
			ticks := test.axis.ticks(span{test.lo, test.hi}, test.room, func(t []tick) bool { return len(t) <= test.room+2 })
			for _, tick := range ticks {
				labels = append(labels, tick.label)
			}
			if got := strings.Join(labels, "|"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestTicksOfAnyRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Axis{Quantity: Quantity(rapid.IntRange(0, 3).Draw(t, "quantity")), Log: rapid.Bool().Draw(t, "log")}
		value := rapid.Float64()
		data := emptySpan()
		for range 2 {
			if v := value.Draw(t, "value"); a.drawable(v) {
				data.include(v)
			}
		}
		r := a.limits(data, rapid.Bool().Draw(t, "vertical"))
		if !(r.lo < r.hi) || math.IsInf(r.hi-r.lo, 0) {
			t.Fatalf("limits of %v: %v", data, r)
		}
		s := newScale(a, r, 0, 500)
		ticks := a.ticks(r, 7, func(t []tick) bool {
			return apart(s, t, func(label string) float64 { return 6 * float64(len(label)) })
		})
		if len(ticks) > 12 {
			t.Fatalf("%d ticks: %v", len(ticks), ticks)
		}
		for i, tick := range ticks {
			if at := s.at(tick.at); !(at > -0.1 && at < 500.1) {
				t.Fatalf("tick %v of %v is at %g", tick, r, at)
			}
			if i > 0 && (tick.at <= ticks[i-1].at || tick.label == ticks[i-1].label) {
				t.Fatalf("ticks %v, %v", ticks[i-1], tick)
			}
		}
	})
}

func TestText(t *testing.T) {
	for _, test := range []struct {
		q    Quantity
		v    float64
		want string
	}{
		{Number, 0, "0"}, {Number, 1536, "1536"}, {Number, 12_345, "12.3k"}, {Number, 0.25, "0.25"}, {Number, 1.0 / 3, "0.333"},
		{Number, -2.5, "−2.5"}, {Number, 1e6, "1M"}, {Number, 3e15, "3e15"}, {Number, 2e-7, "2e−7"}, {Number, 99.95, "100"},
		{Number, math.NaN(), "–"}, {Number, math.Inf(1), "∞"}, {Number, math.Inf(-1), "−∞"},
		{Bytes, 512, "512 B"}, {Bytes, 1536, "1.5 KiB"}, {Bytes, 80 << 30, "80 GiB"}, {Bytes, 1 << 50, "1 PiB"},
		{Percent, 0.3659, "36.6 %"}, {Percent, 1, "100 %"}, {Percent, 0.00012, "0.012 %"},
		{Duration, 0.00234, "2.34 ms"}, {Duration, 1.25, "1.25 s"}, {Duration, 90, "1.5 min"}, {Duration, 7200, "2 h"},
		{Duration, 86_400 * 3, "3 d"}, {Duration, 4.5e-7, "450 ns"}, {Duration, 0.999999999999, "1 s"},
	} {
		if got := (Axis{Quantity: test.q}).Text(test.v); got != test.want {
			t.Errorf("%v of quantity %d: %q, want %q", test.v, test.q, got, test.want)
		}
	}
}

func TestLimits(t *testing.T) {
	bounds := func(lo, hi float64) Axis { return Axis{Min: &lo, Max: &hi} }
	logBounds := bounds(-3, 50)
	logBounds.Log = true
	for _, test := range []struct {
		name     string
		axis     Axis
		data     span
		vertical bool
		want     span
	}{
		{"nothing", Axis{}, emptySpan(), false, span{0, 1}},
		{"nothing, log", Axis{Log: true}, emptySpan(), false, span{1, 10}},
		{"y from zero", Axis{}, span{90, 97}, true, span{0, 100}},
		{"x as it is", Axis{}, span{90, 97}, false, span{90, 97}},
		{"x near zero", Axis{}, span{2, 97}, false, span{0, 97}},
		{"one value", Axis{}, span{4, 4}, false, span{2, 6}},
		{"zero only", Axis{}, span{0, 0}, true, span{0, 1}},
		{"share of all", Axis{Quantity: Percent}, span{0.2, 0.99}, true, span{0, 1}},
		{"fixed", bounds(5, 6), span{0, 10}, true, span{5, 6}},
		{"out of order", bounds(6, 5), span{0, 10}, true, span{0, 10}},
		{"not finite", bounds(math.NaN(), math.Inf(1)), span{0, 10}, true, span{0, 10}},
		{"log, half usable", logBounds, span{1, 100}, false, span{1, 50}},
	} {
		if got := test.axis.limits(test.data, test.vertical); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
