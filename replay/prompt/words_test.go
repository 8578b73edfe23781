package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// The words, unpacked from what prompts are written from, are those of the list.
func TestTheWordListStays(t *testing.T) {
	var list strings.Builder
	for _, packed := range usualWords {
		text := make([]byte, packed>>56)
		for i := range text {
			text[i] = byte(packed >> (8 * i))
		}
		list.WriteString(strings.TrimSuffix(string(text), " ") + "\n")
	}
	const want = "30e4583eaad289e0c67cfea6c34c5a3603230a7ee09ff351d556b9f851bd4a6a"
	if sum := sha256.Sum256([]byte(list.String())); hex.EncodeToString(sum[:]) != want || list.String() != wordList {
		t.Errorf("the words have the SHA-256 %x, want %s: every prompt of words would change", sum, want)
	}
}
