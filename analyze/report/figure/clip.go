package figure

// A rect is a part of the picture.
type rect struct{ left, top, right, bottom float64 }

func (r rect) holds(p point) bool {
	// Half a unit more, for points exactly on the frame.
	return p.x >= r.left-0.5 && p.x <= r.right+0.5 && p.y >= r.top-0.5 && p.y <= r.bottom+0.5
}

func (r rect) overlaps(s rect) bool {
	return r.left < s.right && s.left < r.right && r.top < s.bottom && s.top < r.bottom
}

func (r rect) corners() []point {
	return []point{{r.left, r.top}, {r.right, r.top}, {r.right, r.bottom}, {r.left, r.bottom}}
}

// clipLine returns the parts of a polyline that are inside r. Coordinates are
// clipped, because clip paths of SVG need ids, which clash within a page.
func (r rect) clipLine(line []point) [][]point {
	if len(line) == 1 && r.holds(line[0]) {
		return [][]point{line}
	}
	var parts [][]point
	var part []point
	for i := 1; i < len(line); i++ {
		a, b, visible := r.clipSegment(line[i-1], line[i])
		if !visible {
			continue
		}
		if len(part) == 0 || part[len(part)-1] != a {
			if len(part) > 0 {
				parts = append(parts, part)
			}
			part = []point{a}
		}
		part = append(part, b)
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// clipSegment is the algorithm of Liang and Barsky: the segment is a + t(b-a),
// and each side of r narrows the range of t.
func (r rect) clipSegment(a, b point) (from, to point, visible bool) {
	t0, t1 := 0.0, 1.0
	dx, dy := b.x-a.x, b.y-a.y
	for _, side := range [4]struct{ speed, room float64 }{
		{-dx, a.x - r.left}, {dx, r.right - a.x}, {-dy, a.y - r.top}, {dy, r.bottom - a.y},
	} {
		switch {
		case side.speed == 0:
			if side.room < 0 {
				return a, b, false
			}
		case side.speed < 0:
			t0 = max(t0, side.room/side.speed)
		default:
			t1 = min(t1, side.room/side.speed)
		}
	}
	if t0 > t1 {
		return a, b, false
	}
	from, to = a, b
	if t0 > 0 {
		from = point{a.x + t0*dx, a.y + t0*dy}
	}
	if t1 < 1 {
		to = point{a.x + t1*dx, a.y + t1*dy}
	}
	return from, to, true
}

// clipArea returns the part of a polygon that is inside of r, by cutting along
// each side in turn (Sutherland and Hodgman).
func (r rect) clipArea(area []point) []point {
	area = cut(area, func(p point) float64 { return p.x - r.left })
	area = cut(area, func(p point) float64 { return r.right - p.x })
	area = cut(area, func(p point) float64 { return p.y - r.top })
	return cut(area, func(p point) float64 { return r.bottom - p.y })
}

// cut keeps where inside is not negative.
func cut(area []point, inside func(point) float64) []point {
	var kept []point
	for i, b := range area {
		a := area[(i+len(area)-1)%len(area)]
		da, db := inside(a), inside(b)
		if (da < 0) != (db < 0) {
			t := da / (da - db)
			kept = append(kept, point{a.x + t*(b.x-a.x), a.y + t*(b.y-a.y)})
		}
		if db >= 0 {
			kept = append(kept, b)
		}
	}
	return kept
}
