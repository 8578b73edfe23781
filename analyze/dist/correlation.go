package dist

import "math"

// Pearson is the linear correlation of pairs, x[i] with y[i], -1..1: NaN where
// there are none or one side is constant. The slices must be equally long. On
// ranks it is Spearman's correlation.
func Pearson(x, y []float64) float64 {
	// stats.Correlation is the same number at twenty times the cost.
	meanX, meanY := mean(x), mean(y)
	var xx, xy, yy float64
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xx += dx * dx
		xy += dx * dy
		yy += dy * dy
	}
	r := xy / math.Sqrt(xx) / math.Sqrt(yy)
	if xx == 0 || yy == 0 {
		return math.NaN()
	}
	return min(max(r, -1), 1) // a perfect one may exceed 1 by its last digit
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
