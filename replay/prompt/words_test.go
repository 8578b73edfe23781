package prompt

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestWordListLaws(t *testing.T) {
	list, ended := strings.CutSuffix(wordList, "\n")
	lines := strings.Split(list, "\n")
	if !ended || len(lines) != wordCount || wordCount&(wordCount-1) != 0 {
		t.Fatalf("%d lines, the last one ended: %t; want %d", len(lines), ended, wordCount)
	}
	if !slices.IsSorted(lines) || len(slices.Compact(slices.Clone(lines))) != len(lines) {
		t.Error("the usualWords are not sorted, or not unique")
	}
	form := regexp.MustCompile(`^[a-z]{2,5}$`)
	for _, word := range lines {
		if !form.MatchString(word) {
			t.Errorf("word %q is not of 2 to 5 letters a-z", word)
		}
	}
}

// All words of the list, including the shortest and the longest, can be unpacked.
func TestPackedWordsAreTheList(t *testing.T) {
	var got []string
	for _, packed := range usualWords.packed {
		text := make([]byte, packed>>56)
		for i := range text {
			text[i] = byte(packed >> (8 * i))
		}
		got = append(got, strings.TrimSuffix(string(text), " "))
	}
	if text := strings.Join(got, "\n") + "\n"; text != wordList {
		t.Errorf("packed usualWords differ from the list: %.60q, want %.60q", text, wordList)
	}
}
