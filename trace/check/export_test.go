package check

// KindsOf returns the kinds of a severity, in report order.
func KindsOf(s Severity) (kinds []Kind) {
	for _, d := range descriptions {
		if d.severity == s {
			kinds = append(kinds, d.kind)
		}
	}
	return kinds
}
