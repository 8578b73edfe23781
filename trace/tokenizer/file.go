package tokenizer

import (
	"errors"
	"fmt"

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
	return fmt.Errorf("%s is not that of a tokenizer.json: %w", what, jsonscan.Fault(err))
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

func (f *file) readPreTokenizer(t *Tokenizer) error {
	var p preTokenizer
	if err := p.add(f.PreTokenizer, 0); err != nil {
		return err
	}
	if !p.byteLevel {
		return errors.New("pre-tokenizer has no ByteLevel: only byte-level BPE is supported, not SentencePiece")
	}
	t.splits = p.splits
	return nil
}

// preTokenizer is a sequence of splits, possibly up to ByteLevel.
type preTokenizer struct {
	splits    []splitter
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
	return p.addPattern(*split.Pattern.Regex, removed)
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
		return p.addPattern(oneNumber, false)
	}
	return p.addPattern(numbers, false)
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
		return p.addPattern(gpt2Pattern, false)
	}
	return nil
}

func (p *preTokenizer) addPattern(pattern string, removed bool) error {
	split, err := newSplitter(pattern, removed)
	p.splits = append(p.splits, split)
	return err
}
