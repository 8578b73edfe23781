package figure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// alone returns a sheet that holds only f.
func alone(f Figure) Sheet { return Sheet{Figures: []Figure{f}} }

// samples are typical sheets.
func samples() map[string]Sheet {
	return map[string]Sheet{
		"hits": alone(hitRates()), "metrics": metrics(), "sweep": alone(sweep()), "awkward": awkward(),
	}
}

// figures are those of the samples.
func figures() map[string]Figure {
	all := map[string]Figure{}
	for name, sheet := range samples() {
		for i, f := range sheet.Figures {
			all[fmt.Sprintf("%s %d", name, i)] = f
		}
	}
	return all
}

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// counts are the values in bins whose edges grow by a factor.
func counts(values []float64, low, high float64, bins int) (edges, n []float64) {
	factor := math.Pow(high/low, 1/float64(bins))
	n = make([]float64, bins)
	for i := range bins + 1 {
		edges = append(edges, low*math.Pow(factor, float64(i)))
	}
	for _, v := range values {
		if i := int(math.Log(v/low) / math.Log(factor)); i >= 0 && i < bins {
			n[i]++
		}
	}
	return edges, n
}

func logNormal(r *rand.Rand, n int, median, sigma float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Round(median*math.Exp(sigma*r.NormFloat64())) + 1
	}
	return values
}

func hitRates() Figure {
	var x, lru, lfu, fifo, best []float64
	for i := range 200 {
		size := math.Pow(2, 28+float64(i)*13/199)
		share := 1 - math.Exp(-math.Pow(size/3e10, 0.8))
		x = append(x, size)
		lru, lfu = append(lru, 0.366*share), append(lfu, 0.34*math.Pow(share, 0.8))
		fifo, best = append(fifo, 0.352*math.Pow(share, 1.2)), append(best, 0.366*math.Pow(share, 0.55))
	}
	return Figure{
		Title: "Hit rate against cache size",
		X:     Axis{Label: "Cache size", Quantity: Bytes, Log: true}, Y: Axis{Label: "Prompt tokens found in the cache", Quantity: Percent},
		Series: []Series{{Name: "LRU", X: x, Y: lru}, {Name: "LFU", X: x, Y: lfu}, {Name: "FIFO", X: x, Y: fifo}, {Name: "Belady's bound", X: x, Y: best, Dashed: true}},
		Marks: []Mark{{Label: "80 GiB", At: 80 << 30}, {Label: "640 GiB", At: 640 << 30}, {Label: "90 % of the most", At: 60 << 30, Dashed: true},
			{Label: "infinite cache 36.6 %", At: 0.366, OnY: true, Dashed: true}},
	}
}

func metrics() Sheet {
	r := random()
	of := func(title string, median, sigma float64) Figure {
		values := logNormal(r, 8000, median*1e4, sigma)
		for i := range values {
			values[i] /= 1e4
		}
		slices.Sort(values)
		edges, n := counts(values, values[0]*0.8, values[7999]*1.2, 40)
		axis := Axis{Label: title, Quantity: Duration, Log: values[7999]/values[0] > 20}
		mean := median * math.Exp(sigma*sigma/2)
		return Figure{Title: title, X: axis, Y: Axis{Label: "Requests"}, Series: []Series{{Kind: Bars, X: edges, Y: n}},
			Marks: []Mark{{Label: "mean " + axis.Text(mean), At: mean}, {Label: "median " + axis.Text(values[4000]), At: values[4000]},
				{Label: "p25", At: values[2000], Dashed: true}, {Label: "p75", At: values[6000], Dashed: true}, {Label: "p99 " + axis.Text(values[7920]), At: values[7920], Dashed: true}}}
	}
	return Sheet{Title: "Distribution of the metrics", Note: "both runs replayed conversation.jsonl",
		Figures: []Figure{of("TTFT", 0.4, 0.9), of("E2EL", 6, 0.5), of("TTFT", 0.24, 0.9), of("E2EL", 3.6, 0.5)}}
}

func sweep() Figure {
	var f = Figure{Title: "Throughput against latency", Note: "ISL 3000, OSL 150; the number is the concurrency",
		X: Axis{Label: "P99 TTFT", Quantity: Duration, Log: true}, Y: Axis{Label: "Output token throughput", Unit: "tokens/s"}}
	for k, name := range []string{"baseline", "prefix cache", "prefix cache, 2 nodes"} {
		s := Series{Name: name}
		for c := 1.0; c <= 128; c *= 2 {
			most := 2000 * (1 + 0.5*float64(k))
			y := most * c / (c + 18)
			s.X, s.Y = append(s.X, 0.12/(1+0.4*float64(k))*math.Exp(c/22)), append(s.Y, y)
			s.Labels = append(s.Labels, fmt.Sprint(c))
		}
		f.Series = append(f.Series, s)
	}
	f.Marks = []Mark{{Label: "objective 2 s", At: 2}}
	return f
}

// awkward has empty, infinite, crowded and overlong data.
func awkward() Sheet {
	nan, inf := math.NaN(), math.Inf(1)
	long := "A title that is much longer than the room there is for it above such a narrow plot </script><b>\"bold\"</b> 日本語"
	return Sheet{Title: long, Figures: []Figure{
		{Title: "nothing"}, {Title: "one point", Series: []Series{{X: []float64{3}, Y: []float64{7}}}},
		{Title: "all equal", Series: []Series{{X: []float64{5, 5, 5}, Y: []float64{2, 2, 2}}}},
		{Title: "gaps", Series: []Series{{X: []float64{0, 1, 2, 3, 4, 5, 6}, Y: []float64{1, 3, nan, 4, inf, 2, 6}}}},
		{Title: "log", X: Axis{Log: true}, Y: Axis{Log: true}, Series: []Series{{X: []float64{-1, 0, 1, 10, 100}, Y: []float64{1, 2, 0, 3, 50}}, {X: []float64{3, 30}, Y: []float64{9, 1}}}},
		{Title: "extreme", Series: []Series{{X: []float64{-1e308, 0, 1e308}, Y: []float64{1e299, -1e299, 5e298}}}},
		{Title: long, X: Axis{Label: long, Unit: "€"}, Y: Axis{Label: long}, Series: []Series{{Name: long, X: []float64{1, 2}, Y: []float64{1000000001, 1000000002}}, {Name: "b", X: []float64{1, 2}, Y: []float64{1000000002, 1000000001}}}},
		{Title: "marks", Marks: []Mark{{Label: "p50", At: 1}, {Label: "mean value", At: 1.01}, {Label: "p90", At: 1.02}, {Label: "p95", At: 1.03}, {Label: "p99 at the end", At: 2}, {Label: "above", At: 5, OnY: true}, {Label: "beside", At: 5.05, OnY: true}},
			Y: Axis{Label: "Requests"}, Series: []Series{{X: []float64{0, 1, 2}, Y: []float64{0, 5, 1}}}},
		{Title: "negative", Series: []Series{{Kind: Bars, X: []float64{-2, -1, 0, 1, 2}, Y: []float64{-3, 2, -0.001, 4}}}},
	}}
}
