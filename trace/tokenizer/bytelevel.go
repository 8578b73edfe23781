package tokenizer

// A vocabulary is JSON, and its tokens are bytes: each byte is written as a
// character that can be seen. Those that can be seen anyhow stand for
// themselves, the others, in their order, are U+0100 and those behind it.

// byteOf is the byte that a character stands for, and -1 for any other.
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

// bytesOf returns the bytes that a token of a vocabulary stands for. ok is
// false for one that stands for none, which no text is encoded to.
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
