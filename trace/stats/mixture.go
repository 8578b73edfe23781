package stats

import "math"

// Component is a distribution and its weight in a [Mixture].
type Component struct {
	Weight       float64
	Distribution Distribution
}

// Mixture is a weighted mixture of distributions.
type Mixture struct {
	components []Component
	knots      []float64 // quantiles at 0, 1/256, ..., 1: brackets for the search
}

// NewMixture returns the mixture of at least one component; the weights are
// above 0 and add up to 1.
func NewMixture(components []Component) Mixture {
	m := Mixture{components: components}
	knots := make([]float64, 257)
	for i := range knots {
		p := min(max(float64(i)/256, MinP), 1-MinP)
		low, high := math.Inf(1), math.Inf(-1)
		for _, c := range components {
			low, high = min(low, c.Distribution.Quantile(p)), max(high, c.Distribution.Quantile(p))
		}
		knots[i] = m.search(p, low, high)
	}
	m.knots = knots
	return m
}

func (m Mixture) CDF(x float64) float64 {
	var sum float64
	for _, c := range m.components {
		sum += c.Weight * c.Distribution.CDF(x)
	}
	return sum
}

// Quantile inverts the CDF numerically, to 12 digits.
func (m Mixture) Quantile(p float64) float64 {
	i := int(p * 256)
	return m.search(p, m.knots[i], m.knots[i+1])
}

// search finds the quantile between low and high by bisection.
func (m Mixture) search(p, low, high float64) float64 {
	if m.CDF(low) >= p {
		return low
	}
	for tolerance := 1e-12 * max(math.Abs(low), math.Abs(high)); high-low > tolerance; {
		if x := low + (high-low)/2; x <= low || x >= high {
			break
		} else if m.CDF(x) < p {
			low = x
		} else {
			high = x
		}
	}
	return high
}
