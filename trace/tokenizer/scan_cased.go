package tokenizer

// matchCased matches the patterns that split words where a capital follows a small letter.
func matchCased(s string, contracted bool, digits int) int {
	n := matchCasedWord(s)
	if n > 0 {
		if contracted && n < len(s) {
			n += contraction(s[n:], true)
		}
		return n
	}
	if c, _ := classAt(s); c == number {
		return runOfNumbers(s, digits)
	}
	blank := leadingSpace(s)
	if n = runOf(s[blank:], others); n > 0 {
		n += blank
		for n < len(s) && (s[n] == '\n' || s[n] == '\r' || s[n] == '/') {
			n++
		}
		return n
	}
	return matchSpace(s, true, 0)
}

// matchCasedWord matches casedWord+, otherwise capitals*. A mark may be the one character
// before the letters, or the first of them.
func matchCasedWord(s string) int {
	c, size := classAt(s)
	if c&(letters|number|newline) == 0 {
		n, cased := lettersOfCases(s[size:])
		if n > 0 && (cased || c&marks == 0) {
			return size + n
		}
		if c&marks == 0 {
			return 0
		}
	}
	n, _ := lettersOfCases(s)
	return n
}

// lettersOfCases matches capitals and what has no case, as many as there are, and then
// small letters and what has no case, of which cased needs one: it gives back capitals
// at the end, if there is something without case before them.
func lettersOfCases(s string) (n int, cased bool) {
	caseless := 0 // the end of the last one
	for {
		c, size := classAt(s[n:])
		switch {
		case c&lower != 0:
			return n + runOfSmall(s[n:]), true
		case c&(letters|marks) == 0:
			if caseless > 0 {
				return caseless, true
			}
			return n, false
		case c&upper == 0:
			caseless = n + size
		}
		n += size
	}
}

// runOfSmall matches small letters and what has no case.
func runOfSmall(s string) (n int) {
	for {
		c, size := classAt(s[n:])
		if c&(letters|marks) == 0 || c&upper != 0 {
			return n
		}
		n += size
	}
}
