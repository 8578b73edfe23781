package diff

// A [Focus] has at least mostOfError of all errors, and requests whose mean error is
// at least focusLift times that of all. Of several, it is the one whose share of the
// errors exceeds its share of the requests most: weighted relative accuracy, a
// measure of subgroup discovery. A second condition has to add secondCondition.
const (
	mostOfError     = 0.5
	focusLift       = 1.5
	secondCondition = 0.02
)

// focused is the number of properties that a [Focus] is searched in.
const focused = 3

// cell holds the requests in one band of each property.
type cell struct {
	bands    [focused]int
	requests float64
	errors   [phases]float64
}

func (c *cell) add(other *cell) {
	c.requests += other.requests
	for k, size := range other.errors {
		c.errors[k] += size
	}
}

// region is a range of the bands of one property.
type region struct {
	Where
	property, from, to int // bands from to to-1
}

func (r region) has(c *cell) bool {
	band := c.bands[r.property]
	return r.from <= band && band < r.to
}

// focus searches all regions of one or two properties.
func (c *compared) focus(properties []property) Focus {
	cells := c.cells(properties)
	var all cell
	for i := range cells {
		all.add(&cells[i])
	}
	total := all.errors[UntilFirstToken] + all.errors[Decode]
	best := Focus{Phase: UntilFirstToken, Requests: 1}
	if all.errors[Decode] > all.errors[UntilFirstToken] {
		best.Phase = Decode
	}
	best.Share = share(all.errors[best.Phase], total)
	most := 0.0
	consider := func(one, other region, least float64) {
		var inside cell
		for i := range cells {
			if one.has(&cells[i]) && other.has(&cells[i]) {
				inside.add(&cells[i])
			}
		}
		of := share(inside.requests, all.requests)
		for k, size := range inside.errors {
			excess := share(size, total) - of*share(all.errors[k], total)
			if excess <= most+least || size < mostOfError*total || size < focusLift*of*all.errors[k] {
				continue
			}
			most = excess
			best = Focus{Phase: Phase(k), Share: share(size, total), Requests: of, Where: []Where{one.Where}}
			if other != one {
				best.Where = append(best.Where, other.Where)
			}
		}
	}
	regions := regionsOf(properties)
	for _, one := range regions {
		consider(one, one, 0)
	}
	for i, one := range regions {
		for _, other := range regions[i+1:] {
			if other.property != one.property {
				consider(one, other, secondCondition)
			}
		}
	}
	return best
}

func (c *compared) cells(properties []property) (cells []cell) {
	place := map[[focused]int]int{}
	for i := range c.pairs.pairs {
		p := &c.pairs.pairs[i]
		one := cell{requests: 1, errors: p.phaseErrors()}
		for j := range one.bands {
			one.bands[j] = properties[j].band(p)
		}
		at, ok := place[one.bands]
		if !ok {
			at, cells = len(cells), append(cells, cell{bands: one.bands})
			place[one.bands] = at
		}
		cells[at].add(&one)
	}
	return cells
}

// regionsOf returns the bands beyond each limit of a property or, if they have no
// order, each band.
func regionsOf(properties []property) (all []region) {
	for j, by := range properties[:focused] {
		n := len(by.bands)
		for i, limit := range by.limits {
			all = append(all,
				region{Where{by.name, above(limit)}, j, i + 1, n},
				region{Where{by.name, upTo(limit)}, j, 0, i + 1})
		}
		for i := 0; by.limits == nil && n > 1 && i < n; i++ {
			all = append(all, region{Where{by.name, by.bands[i]}, j, i, i + 1})
		}
	}
	return all
}
