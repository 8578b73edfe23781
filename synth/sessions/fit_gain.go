package sessions

const (
	// maxIntervalBounds is the number of places at which intervals begin and end.
	maxIntervalBounds = 64
	// An interval must explain more than this share of the variance, and gain this many
	// times as much as the best single split: there are so many intervals that some gain
	// a little by chance.
	minExplained, intervalGain = .25, 2
)

// interval is a range of sorted points.
type interval struct{ from, to int }

// runningSums hold the sums of the weights of points and of their targets before each
// point.
type runningSums struct {
	points  int
	weights []float64
	targets [][]float64 // weighted
	scale   []float64   // 1 / variance of each target, or 0
}

func (g *treeGrower) runningSums(points []point) runningSums {
	n := len(points)
	r := runningSums{points: n, weights: make([]float64, n+1)}
	for i, p := range points {
		r.weights[i+1] = r.weights[i] + p.weight
	}
	for _, target := range g.targets {
		sums, squares := make([]float64, n+1), 0.0
		for i, p := range points {
			x := target[p.sample]
			sums[i+1] = sums[i] + p.weight*x
			squares += p.weight * x * x
		}
		mean, scale := sums[n]/r.weights[n], 0.0
		if variance := squares/r.weights[n] - mean*mean; variance >= 1e-12 {
			scale = 1 / variance
		}
		r.targets, r.scale = append(r.targets, sums), append(r.scale, scale)
	}
	return r
}

// gain returns n * R^2 of dividing the points into those of an interval and the others:
// the share of the targets' variances that this explains, times the number of points. Its
// mean is 1 for a target if there is nothing to explain.
func (r *runningSums) gain(in interval) (gain float64) {
	all, inside := r.weights[r.points], r.weights[in.to]-r.weights[in.from]
	share := inside / all
	for t, sums := range r.targets {
		sum := sums[in.to] - sums[in.from]
		apart := sum/inside - (sums[r.points]-sum)/(all-inside)
		gain += float64(r.points) * share * (1 - share) * apart * apart * r.scale[t]
	}
	return gain
}

// bestInterval returns the interval of points that differs most from those on both
// sides, such as an outage in a dimension of time. No single split shows it if both
// sides are alike.
func (r *runningSums) bestInterval(points []point, minLeaf int) (in interval, gain float64) {
	n := len(points)
	step := max(minLeaf, n/maxIntervalBounds)
	var bounds []int
	for i := step; i <= n-minLeaf; i++ {
		if points[i-1].value < points[i].value {
			bounds = append(bounds, i)
			i += step - 1
		}
	}
	for i, from := range bounds {
		for _, to := range bounds[i+1:] {
			if now := r.gain(interval{from, to}); now > gain {
				in, gain = interval{from, to}, now
			}
		}
	}
	if gain == 0 {
		return in, 0
	}
	// The bounds are coarse: find the exact beginning.
	coarse := in
	for from := max(minLeaf, coarse.from-step); from <= min(coarse.from+step, coarse.to-minLeaf); from++ {
		if now := r.gain(interval{from, coarse.to}); points[from-1].value < points[from].value && now > gain {
			in, gain = interval{from, coarse.to}, now
		}
	}
	return in, gain
}
