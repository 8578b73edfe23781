package tokenizer

// The tokens of a vocabulary are bytes, written in JSON as visible characters: a
// visible byte is itself, and the others are U+0100 and up, in order.

// byteOf maps a character to its byte, or to -1.
var byteOf = func() (of [256 + 68]int16) {
	for i := range of {
		of[i] = -1
	}
	next := 256
	for b := range 256 {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b {
			of[b] = int16(b)
			continue
		}
		of[next] = int16(b)
		next++
	}
	return of
}()

// bytesOf returns the bytes of a token of a vocabulary. ok is false if the token
// has other characters; no text is encoded to it.
func bytesOf(token string) (text string, ok bool) {
	out := make([]byte, 0, len(token))
	for _, c := range token {
		if int(c) >= len(byteOf) || byteOf[c] < 0 {
			return "", false
		}
		out = append(out, byte(byteOf[c]))
	}
	return string(out), len(out) > 0
}
