package sessions

import (
	"math"
	"slices"

	"moontide/synth"
	"moontide/trace/stats"
)

// templateRegime is a part of the source in which templates have a popularity of
// their own.
type templateRegime struct {
	UntilMs float64 `json:"until_ms"` // of the source
	// Templates holds a number and the sessions that start with it and no longer one.
	// Number 0 stands for all templates that are not listed.
	Templates [][2]int `json:"templates"`
}

// regimePopularity is how often sessions start with each template in a regime.
type regimePopularity struct {
	stats.Discrete[int]
	listed map[int]bool
}

func regimePopularities(regimes []templateRegime) (all []regimePopularity) {
	for _, r := range regimes {
		p := regimePopularity{listed: map[int]bool{}}
		for _, t := range r.Templates {
			p.Add(t[0], t[1])
			p.listed[t[0]] = true
		}
		all = append(all, p)
	}
	return all
}

// maxRedrawn bounds the attempts to draw a template that is not listed.
const maxRedrawn = 32

// templateAt draws the template of a session that starts with one at a time of the
// source.
func (c *client) templateAt(phase float64, uniform func() float64) int {
	i, _ := slices.BinarySearchFunc(c.TemplateRegimes, phase, func(r templateRegime, at float64) int {
		if r.UntilMs <= at {
			return -1
		}
		return 1
	})
	if i = min(i, len(c.regimes)-1); i < 0 || c.regimes[i].Total() == 0 {
		return c.popularity.At(uniform())
	}
	regime := &c.regimes[i]
	t := regime.At(uniform())
	for n := 0; t == 0 && n < maxRedrawn; n++ {
		if other := c.popularity.At(uniform()); !regime.listed[other] {
			t = other
		}
	}
	if t == 0 {
		t = c.popularity.At(uniform())
	}
	return t
}

// templateStart is a session that starts with a template.
type templateStart struct {
	at       float64
	template int
}

// fitPopularity counts the sessions that start with each template and no longer one,
// in all and by regime.
func (f *clientFitter) fitPopularity() {
	var starts []templateStart
	for i := range f.rows {
		if r := &f.rows[i]; r.parent == none && r.level == 0 && r.template > 0 {
			starts = append(starts, templateStart{r.at, r.template})
		}
	}
	f.Templates, _ = countTemplates(starts)
	for _, part := range splitPopularity(starts, 0) {
		counts, rest := countTemplates(part)
		if rest >= minRequests {
			counts = append([][2]int{{0, rest}}, counts...)
		}
		until := rounded(part[len(part)-1].at, 4)
		f.TemplateRegimes = append(f.TemplateRegimes, templateRegime{until, counts})
	}
	if len(f.TemplateRegimes) == 1 {
		f.TemplateRegimes = nil
	}
}

// countTemplates counts the sessions of each template that has enough of them, and
// the others.
func countTemplates(starts []templateStart) (counts [][2]int, rest int) {
	sessions := map[int]int{}
	for _, s := range starts {
		sessions[s.template]++
	}
	for t, n := range sessions {
		if n < minRequests {
			rest += n
			continue
		}
		counts = append(counts, [2]int{t, n})
	}
	slices.SortFunc(counts, func(a, b [2]int) int { return a[0] - b[0] })
	return counts, rest
}

const (
	minRegimeStarts = 64 // sessions with a template
	maxRegimeDepth  = 6  // of splits
)

// splitPopularity splits sessions in order of time where the popularity of templates
// changes: where the likelihood of one popularity before and another one after a time
// is far above that by chance.
func splitPopularity(starts []templateStart, depth int) [][]templateStart {
	if at := changeOfPopularity(starts); at > 0 && depth < maxRegimeDepth {
		return append(splitPopularity(starts[:at], depth+1), splitPopularity(starts[at:], depth+1)...)
	}
	if len(starts) == 0 {
		return nil
	}
	return [][]templateStart{starts}
}

// changeOfPopularity returns where the popularity of templates changes most, 0 if it
// does not. Templates of few sessions count as one.
func changeOfPopularity(starts []templateStart) (best int) {
	n := len(starts)
	if n < 2*minRegimeStarts {
		return 0
	}
	right := map[int]float64{}
	counts, rest := countTemplates(starts)
	for _, t := range counts {
		right[t[0]] = float64(t[1])
	}
	if rest > 0 {
		right[0] = float64(rest)
	}
	var sumLeft, sumRight float64 // of count * log count
	for _, c := range right {
		sumRight += xLogX(c)
	}
	whole := sumRight - xLogX(float64(n))
	// The statistic has about this many degrees of freedom, and more for rare ones.
	free := 1.3 * float64(len(right)-1)
	most := free + 3*math.Sqrt(2*free) + 4*math.Log(float64(n))
	left := map[int]float64{}
	for i, s := range starts {
		if i >= minRegimeStarts && n-i >= minRegimeStarts && s.at > starts[i-1].at {
			gain := 2 * (sumLeft - xLogX(float64(i)) + sumRight - xLogX(float64(n-i)) - whole)
			if gain > most {
				best, most = i, gain
			}
		}
		t := s.template
		if right[t] == 0 {
			t = 0
		}
		sumLeft += xLogX(left[t]+1) - xLogX(left[t])
		sumRight += xLogX(right[t]-1) - xLogX(right[t])
		left[t]++
		right[t]--
	}
	return best
}

func xLogX(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return x * math.Log(x)
}

// checkTemplateRegimes checks that the regimes follow one another and have templates
// of the client.
func (f *clientFile) checkTemplateRegimes() {
	own := map[int]bool{0: true}
	for _, t := range f.Templates {
		own[t[0]] = true
	}
	until := 0.0
	for i, r := range f.TemplateRegimes {
		checkIn(span{until, timeRange.high}, r.UntilMs, "template_regimes[%d].until_ms", i)
		until = r.UntilMs
		for k, t := range r.Templates {
			if !own[t[0]] {
				synth.Fail("template_regimes[%d].templates[%d][0]: %d is none of the client's templates", i, k, t[0])
			}
			checkIn(countRange, float64(t[1]), "template_regimes[%d].templates[%d][1], the sessions", i, k)
		}
	}
}
