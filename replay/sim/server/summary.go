package server

import "time"

// Summary describes what a [Server] answered, as it wrote it: the truth that a
// client's figures can be checked against.
type Summary struct {
	Completed    int     `json:"completed_requests"`
	Aborted      int     `json:"aborted_requests"` // because the client left
	OutputTokens int     `json:"output_tokens"`
	TTFT         Latency `json:"ttft"`
	ITL          Latency `json:"itl"`
	E2EL         Latency `json:"e2el"`
}

// Latency describes durations in milliseconds. Percentiles are exact to 0.1 %.
type Latency struct {
	Count    int     `json:"count"`
	MeanMS   float64 `json:"mean_ms"`
	MedianMS float64 `json:"median_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

// Summary returns what the server answered until its shutdown. Call it when
// [Server.Shutdown] has returned.
func (s *Server) Summary() Summary {
	m := &s.latencies
	return Summary{
		Completed:    int(m.stopped.Load() + m.full.Load()),
		Aborted:      int(m.aborted.Load()),
		OutputTokens: int(m.ttft.fine.TotalCount() + m.itl.fine.TotalCount()),
		TTFT:         m.ttft.latency(),
		ITL:          m.itl.latency(),
		E2EL:         m.e2el.latency(),
	}
}

func (h *histogram) latency() Latency {
	n := h.fine.TotalCount()
	if n == 0 {
		return Latency{}
	}
	ms := func(units int64) float64 { return float64(units) * float64(fineUnit) / float64(time.Millisecond) }
	return Latency{
		Count:    int(n),
		MeanMS:   time.Duration(h.sum.Load()).Seconds() * 1e3 / float64(n),
		MedianMS: ms(h.fine.ValueAtQuantile(50)),
		P99MS:    ms(h.fine.ValueAtQuantile(99)),
		MaxMS:    ms(h.fine.Max()),
	}
}
