package sessions

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"moontide/trace/stats"
)

const (
	// clusterRestarts is the number of seedings, and clusterSteps the most steps
	// after each, of which the best is kept.
	clusterRestarts, clusterSteps = 8, 50
	// clusterSample is the most sessions by which clusters are found.
	clusterSample = 10_000
)

// features describe the first turn of a session: the logarithms of the tokens of the
// prompt after the template, of the template's, and of the answer; scaled to a
// deviation of 1. Later turns do not count: a session cut off by the end of the trace
// would be in a cluster of short ones, and all others would seem to go on.
type features [3]float64

// divideByClusters divides the sessions into at most n clusters of similar ones,
// which become clients. It is k-means with the seeding of D. Arthur and
// S. Vassilvitskii ("k-means++: The Advantages of Careful Seeding", SODA 2007). It
// reports whether there are several.
func (f *fitter) divideByClusters(n int) bool {
	session, points := f.sessionFeatures()
	standardize(points)
	random := stats.NewStream(0, "clusters")
	sample := points
	if len(points) > clusterSample {
		sample = make([]features, clusterSample)
		for i := range sample {
			sample[i] = points[random.IntN(len(points))]
		}
	}
	centers := bestCenters(sample, n, random)
	sizes := f.assign(centers, session, points)
	for len(centers) > 1 && slices.Min(sizes) < f.minClient() { // to the nearest others
		least := slices.Index(sizes, slices.Min(sizes))
		centers = slices.Delete(centers, least, least+1)
		sizes = f.assign(centers, session, points)
	}
	if len(centers) < n {
		f.note("the sessions make %d clusters instead of %d: others have fewer than %d requests", len(centers), n, f.minClient())
	}
	if len(centers) == 1 {
		return false
	}
	names := make([]string, len(centers))
	for i := range names {
		names[i] = fmt.Sprintf("cluster%d", i+1)
	}
	f.divideInto(names...)
	return true
}

// assign sets the client of each row to the center that is nearest to its session,
// and returns the requests of each.
func (f *fitter) assign(centers []features, session []int32, points []features) []int {
	sizes := make([]int, len(centers))
	for i := range f.rows {
		c, _ := nearest(centers, points[session[i]])
		f.rows[i].client = int32(c)
		sizes[c]++
	}
	return sizes
}

// sessionOfRows returns the number of the session of each row.
func (f *fitter) sessionOfRows() []int32 {
	session := make([]int32, len(f.rows))
	named := make(map[int32]int32) // sessions by their first row
	next := int32(0)
	for i := range f.rows {
		r := &f.rows[i]
		n := next
		switch {
		case f.file.SessionIDs || r.follows != none:
			if known, ok := named[r.first]; ok {
				n = known
			}
			named[r.first] = n
		case r.parent != none && r.parent < int32(i):
			n = session[r.parent]
		}
		session[i] = n
		next = max(next, n+1)
	}
	return session
}

// sessionFeatures returns the session of each row and the features of each session.
func (f *fitter) sessionFeatures() (session []int32, points []features) {
	session = f.sessionOfRows()
	for i := range f.rows {
		if r := &f.rows[i]; int(session[i]) == len(points) {
			own := float64(max(0, r.isl-f.tokensOf(r.template)))
			points = append(points, features{math.Log1p(own), math.Log1p(float64(f.tokensOf(r.template))), math.Log1p(float64(r.osl))})
		}
	}
	return session, points
}

// standardize scales each feature to a mean of 0 and a deviation of 1.
func standardize(points []features) {
	for d := range len(features{}) {
		values := make([]float64, len(points))
		for i := range points {
			values[i] = points[i][d]
		}
		mean := sum(values) / float64(len(values))
		variance := 0.0
		for _, x := range values {
			variance += (x - mean) * (x - mean) / float64(len(values))
		}
		for i := range points {
			points[i][d] = (points[i][d] - mean) / math.Sqrt(max(variance, 1e-9))
		}
	}
}

// bestCenters returns the centers with the smallest sum of squared distances.
func bestCenters(points []features, n int, random *rand.Rand) (best []features) {
	least := math.Inf(1)
	for range clusterRestarts {
		centers := seedCenters(points, n, random)
		squares := math.Inf(1)
		for range clusterSteps {
			moved := moveCenters(points, centers)
			if moved >= squares*(1-1e-6) {
				break
			}
			squares = moved
		}
		if squares < least {
			least, best = squares, centers
		}
	}
	slices.SortFunc(best, func(a, b features) int { return slices.Compare(a[:], b[:]) })
	return best
}

// seedCenters draws centers from the points, each with a probability proportional to
// its squared distance from the nearest center before it.
func seedCenters(points []features, n int, random *rand.Rand) []features {
	centers := []features{points[random.IntN(len(points))]}
	upTo := make([]float64, len(points))
	for len(centers) < n {
		total := 0.0
		for i, p := range points {
			_, d := nearest(centers, p)
			total += d
			upTo[i] = total
		}
		if total == 0 { // fewer distinct points than centers
			break
		}
		i, _ := slices.BinarySearch(upTo, random.Float64()*total)
		centers = append(centers, points[min(i, len(points)-1)])
	}
	return centers
}

// moveCenters moves each center to the mean of the points that are nearest to it,
// and returns the sum of their squared distances before.
func moveCenters(points, centers []features) (squares float64) {
	sums := make([]features, len(centers))
	counts := make([]float64, len(centers))
	for _, p := range points {
		c, d := nearest(centers, p)
		squares += d
		counts[c]++
		for i := range p {
			sums[c][i] += p[i]
		}
	}
	for c := range centers {
		for i := range centers[c] {
			centers[c][i] = sums[c][i] / cmp.Or(counts[c], 1)
		}
	}
	return squares
}

// nearest returns the index of the nearest center and its squared distance.
func nearest(centers []features, p features) (index int, squares float64) {
	squares = math.Inf(1)
	for i := range centers {
		d := 0.0
		for k, x := range p {
			d += (x - centers[i][k]) * (x - centers[i][k])
		}
		if d < squares {
			index, squares = i, d
		}
	}
	return index, squares
}
