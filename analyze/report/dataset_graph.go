package report

import (
	"moontide/analyze"
	"moontide/analyze/report/doc"
)

// graphSection describes which rows wait for which, if they name them.
func graphSection(to *doc.Document, g *analyze.Graph) {
	if g == nil {
		return
	}
	s := to.Section("Graph of requests (after)")
	s.Text("Rows that wait for each other or share a session id form one group, such as an agent with its sub-agents. A replay counts a group as one session.")
	s.Row("Groups", doc.Int(g.Sessions), "", "")
	s.Row("Requests per group, mean", doc.Fixed(g.Requests.Mean, 2), "", "up to "+doc.Fixed(g.Requests.Max, 0))
	s.Row("Requests that wait for several", doc.Int(g.Joins), "", "")
	if g.Lost > 0 {
		s.Row("Unknown ids in after", doc.Int(g.Lost), "", "lost turns")
	}
}

// relationRows describes how turns relate to the turns before, if not all extend them.
func relationRows(s *doc.Section, r *analyze.Relations) {
	if r == nil || r.Shortened+r.Rewritten == 0 {
		return
	}
	turns := r.Extend + r.Shortened + r.Rewritten + r.Unknown
	row := func(what string, n int) {
		if n > 0 {
			s.Row(what, doc.Int(n), "", doc.Share(n, turns))
		}
	}
	row("Turns that extend the previous one", r.Extend)
	row("Turns with a shorter prompt", r.Shortened)
	row("Turns that rewrite the previous one", r.Rewritten)
	row("Turns without block ids", r.Unknown)
}

func graphJSON(g *analyze.Graph) any {
	of, known := orZero(g)
	return orNull(object{
		{"sessions", of.Sessions}, {"requests", of.Requests},
		{"joins", of.Joins}, {"lost", of.Lost},
	}, known)
}

func relationsJSON(r *analyze.Relations) any {
	of, known := orZero(r)
	return orNull(object{
		{"extend", of.Extend}, {"shortened", of.Shortened}, {"rewritten", of.Rewritten}, {"unknown", of.Unknown},
	}, known)
}
