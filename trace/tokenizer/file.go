package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bytedance/sonic"

	"moontide/trace/jsonscan"
)

// strict rejects unknown members, which could change the encoding.
var strict = sonic.Config{CopyString: true, ValidateString: true, DisallowUnknownFields: true}.Froze()

// raw is JSON that is parsed later.
type raw = sonic.NoCopyRawMessage

// file is a tokenizer.json. Truncation, padding, the post-processor and the
// decoder are ignored: the server handles them.
type file struct {
	Version       raw          `json:"version"`
	Truncation    raw          `json:"truncation"`
	Padding       raw          `json:"padding"`
	AddedTokens   []addedToken `json:"added_tokens"`
	Normalizer    raw          `json:"normalizer"`
	PreTokenizer  raw          `json:"pre_tokenizer"`
	PostProcessor raw          `json:"post_processor"`
	Decoder       raw          `json:"decoder"`
	Model         raw          `json:"model"`
}

// unread shortens an error of the JSON library, which quotes the file.
func unread(what string, err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if len(line) > 120 {
		line = line[:120] + "..."
	}
	return fmt.Errorf("%s is not that of a tokenizer.json: %s", what, line)
}

func absent(r raw) bool { return len(r) == 0 || string(r) == "null" }

// kindOf returns the type of a step.
func kindOf(step raw) (string, error) {
	var kind struct {
		Type string `json:"type"`
	}
	if err := jsonscan.Strict.Unmarshal(step, &kind); err != nil {
		return "", unread("a step", err)
	}
	return kind.Type, nil
}

func (f *file) readNormalizer(t *Tokenizer) error { return t.addNormalizer(f.Normalizer, 0) }

// maxDepth is the maximum nesting depth of sequences.
const maxDepth = 4

func (t *Tokenizer) addNormalizer(step raw, depth int) error {
	if absent(step) {
		return nil
	}
	kind, err := kindOf(step)
	switch {
	case err != nil:
		return err
	case kind == "NFC":
		t.nfc = true
		return nil
	case kind != "Sequence" || depth == maxDepth:
		return fmt.Errorf("normalizer %q is not supported: only NFC is", kind)
	}
	var sequence struct {
		Type        string `json:"type"`
		Normalizers []raw  `json:"normalizers"`
	}
	if err := strict.Unmarshal(step, &sequence); err != nil {
		return unread("normalizer", err)
	}
	for _, inner := range sequence.Normalizers {
		if err := t.addNormalizer(inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) readPreTokenizer(t *Tokenizer) (err error) {
	var p preTokenizer
	if err := p.add(f.PreTokenizer, 0); err != nil {
		return err
	}
	if !p.byteLevel {
		return errors.New("pre-tokenizer has no ByteLevel: only byte-level BPE is supported, not SentencePiece")
	}
	t.splits, err = p.splitters()
	return err
}

// preTokenizer is a sequence of splits, possibly up to ByteLevel.
type preTokenizer struct {
	patterns  []string
	removed   []bool // by pattern: text between matches is dropped, otherwise kept as words
	byteLevel bool
}

func (p *preTokenizer) add(step raw, depth int) error {
	if absent(step) {
		return nil
	}
	kind, err := kindOf(step)
	switch {
	case err != nil:
		return err
	case p.byteLevel:
		return fmt.Errorf("pre-tokenizer %q after ByteLevel is not supported", kind)
	}
	switch kind {
	case "Sequence":
		return p.addSequence(step, depth)
	case "Split":
		return p.addSplit(step)
	case "Digits":
		return p.addDigits(step)
	case "ByteLevel":
		p.byteLevel = true
		return p.addByteLevel(step)
	}
	return fmt.Errorf("pre-tokenizer %q is not supported: only Split, Digits and ByteLevel are", kind)
}

func (p *preTokenizer) addSequence(step raw, depth int) error {
	var sequence struct {
		Type          string `json:"type"`
		PreTokenizers []raw  `json:"pretokenizers"`
	}
	if err := strict.Unmarshal(step, &sequence); err != nil {
		return unread("pre-tokenizer", err)
	}
	const most = 16
	if depth == maxDepth || len(sequence.PreTokenizers) > most {
		return errors.New("pre-tokenizer is a sequence of too many steps")
	}
	for _, inner := range sequence.PreTokenizers {
		if err := p.add(inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (p *preTokenizer) addSplit(step raw) error {
	var split struct {
		Type    string `json:"type"`
		Pattern struct {
			String *string `json:"String"`
			Regex  *string `json:"Regex"`
		} `json:"pattern"`
		Behavior string `json:"behavior"`
		Invert   bool   `json:"invert"`
	}
	if err := strict.Unmarshal(step, &split); err != nil {
		return unread("Split", err)
	}
	if split.Pattern.Regex == nil {
		return errors.New("pre-tokenizer Split without a Regex is not supported")
	}
	removed := split.Behavior == "Removed" && split.Invert
	if split.Behavior != "Isolated" && !removed {
		return fmt.Errorf("pre-tokenizer Split with behavior %q and invert %t is not supported: only Isolated is", split.Behavior, split.Invert)
	}
	p.addPattern(*split.Pattern.Regex, removed)
	return nil
}

func (p *preTokenizer) addDigits(step raw) error {
	var digits struct {
		Type       string `json:"type"`
		Individual bool   `json:"individual_digits"`
	}
	if err := strict.Unmarshal(step, &digits); err != nil {
		return unread("Digits", err)
	}
	if digits.Individual {
		p.addPattern(`\p{N}`, false)
	} else {
		p.addPattern(`\p{N}+`, false)
	}
	return nil
}

func (p *preTokenizer) addByteLevel(step raw) error {
	level := struct {
		Type           string `json:"type"`
		AddPrefixSpace bool   `json:"add_prefix_space"`
		TrimOffsets    bool   `json:"trim_offsets"` // irrelevant: there are no offsets
		UseRegex       bool   `json:"use_regex"`
	}{AddPrefixSpace: true, UseRegex: true}
	switch err := strict.Unmarshal(step, &level); {
	case err != nil:
		return unread("ByteLevel", err)
	case level.AddPrefixSpace:
		return errors.New("pre-tokenizer ByteLevel with add_prefix_space is not supported")
	case level.UseRegex:
		p.addPattern(gpt2Pattern, false)
	}
	return nil
}

func (p *preTokenizer) addPattern(pattern string, removed bool) {
	p.patterns = append(p.patterns, pattern)
	p.removed = append(p.removed, removed)
}

// splitters returns a scanner of all patterns if there is one, and otherwise
// a splitter of each.
func (p *preTokenizer) splitters() ([]splitter, error) {
	if s := scannerOf(p.patterns...); s != nil && !slices.Contains(p.removed, true) {
		return []splitter{s}, nil
	}
	splits := make([]splitter, len(p.patterns))
	for i, pattern := range p.patterns {
		if s := scannerOf(pattern); s != nil {
			scanner := *s
			scanner.removed = p.removed[i]
			splits[i] = &scanner
			continue
		}
		var err error
		if splits[i], err = newBacktracking(pattern, p.removed[i]); err != nil {
			return nil, err
		}
	}
	return splits, nil
}
