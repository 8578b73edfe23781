package report

import (
	"slices"
	"strings"

	"moontide/analyze/cache"
	"moontide/analyze/report/doc"
	"moontide/trace"
	"moontide/trace/routing"
)

func (c Comparison) table() doc.Table {
	t := doc.Table{Columns: []string{""}, Left: 1}
	for _, data := range c {
		t.Columns = append(t.Columns, data.Name)
	}
	return t
}

// caches compares the caches, and those of workers. Sizes are matched by name: their number
// of blocks depends on the trace's block size.
func (c Comparison) caches(d *doc.Document) {
	shared, each := c.table(), c.table()
	workers := 0
	for _, size := range c.asked() {
		for _, policy := range cache.Policies() {
			c.addHits(&shared, string(policy), size)
		}
		c.addHits(&each, sharedSingle, size)
		for _, r := range routing.Policies() {
			c.addHits(&each, string(r), size)
		}
		c.addHits(&each, sharedTotal, size)
	}
	for _, data := range c {
		if data.Cache != nil {
			workers = max(workers, data.Cache.Workers)
		}
	}
	if len(shared.Rows) > 0 {
		s := d.Section("Cache size")
		s.Text("Block hits / token hits of one cache shared by all requests of a trace, in percent.")
		s.Table(shared)
	}
	if len(each.Rows) > 0 {
		s := d.Section("Workers")
		s.Text("Block hits / token hits of "+doc.Count(workers, "worker")+" with a cache of this size each, in percent.",
			"For comparison: one cache of that size ("+sharedSingle+") and one of all together ("+sharedTotal+").", randomIsOneDraw)
		s.Table(each)
	}
}

func (c Comparison) asked() []cache.Capacity {
	var sizes []cache.Capacity
	for _, data := range c {
		if data.Cache == nil {
			continue
		}
		for _, size := range data.Cache.Capacities {
			if !slices.Contains(sizes, size) {
				sizes = append(sizes, size)
			}
		}
	}
	return sizes
}

// addHits adds a row, unless fewer than two traces have such hits.
func (c Comparison) addHits(t *doc.Table, name string, size cache.Capacity) {
	row := []string{name + ", " + sizeName(size)}
	for _, data := range c {
		row = append(row, bothRates(data.Cache.at(name, size)))
	}
	kept, _ := comparable([][]string{row})
	t.Rows = append(t.Rows, kept...)
}

func (c *Cache) at(name string, size cache.Capacity) (found trace.Opt[cache.Hits]) {
	if !c.known() {
		return found
	}
	blocks, err := size.Blocks(c.BlockSize, c.BytesPerToken)
	if err != nil {
		return found
	}
	for _, p := range c.Points {
		if p.Capacity == blocks && string(p.Policy) == name {
			return trace.Some(p.Hits)
		}
	}
	for _, f := range c.Fleets {
		for _, h := range fleetHitsOf(f) {
			if f.Capacity == blocks && h.name == name {
				return trace.Some(h.hits)
			}
		}
	}
	return found
}

func bothRates(h trace.Opt[cache.Hits]) string {
	if !h.Set {
		return doc.Absent
	}
	r := h.Value.Rates()
	return doc.Percent(r.Block) + " / " + doc.PercentOr(r.Token)
}

func sizeName(c cache.Capacity) string {
	if c.Unit == cache.Bytes {
		return doc.Fixed(c.Amount/(1<<30), 2) + " GiB"
	}
	return doc.Count(int(c.Amount), strings.TrimSuffix(string(c.Unit), "s"))
}
