package report

import (
	"strings"
	"unicode"
)

// absent stands in text for what is not known.
const absent = "-"

// oneLine makes foreign text harmless: what a server answered, what a file or a
// model is called. Control characters in it could break the lines of a report
// or command the terminal that shows it.
func oneLine(foreign string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, foreign)
	return strings.Join(strings.Fields(plain), " ")
}
