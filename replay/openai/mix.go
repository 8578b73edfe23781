package openai

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"moontide/trace"
)

// Share is a model of a mix.
type Share struct {
	Model  string
	Weight float64 // relative to those of the others
}

// ParseModels parses the name of a model, or a mix such as a=0.7,b=0.3. Names may
// contain commas and equals signs: text is a mix only if it has several parts,
// separated by commas, and each is a name, an equals sign and a number.
func ParseModels(text string) (model string, mix []Share, err error) {
	for part := range strings.SplitSeq(text, ",") {
		i := strings.LastIndexByte(part, '=')
		if i <= 0 {
			return text, nil, nil
		}
		weight, err := strconv.ParseFloat(part[i+1:], 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return text, nil, nil
		}
		mix = append(mix, Share{strings.TrimSpace(part[:i]), weight})
	}
	if len(mix) == 1 {
		return text, nil, nil
	}
	return "", mix, checkMix(mix)
}

func checkMix(mix []Share) error {
	total := 0.0
	for i, s := range mix {
		switch {
		case s.Model == "" || !utf8.ValidString(s.Model):
			return fmt.Errorf("the name of model %d of the mix is empty or not UTF-8", i+1)
		case slices.ContainsFunc(mix[:i], func(other Share) bool { return other.Model == s.Model }):
			return fmt.Errorf("the mix has %q twice", s.Model)
		case !(s.Weight > 0):
			return fmt.Errorf("the weight of %q in the mix is not above 0: %v", s.Model, s.Weight)
		}
		total += s.Weight
	}
	if math.IsInf(total, 0) {
		return errors.New("the weights of the mix have no finite sum")
	}
	return nil
}

// mixText returns a mix in the form that ParseModels parses.
func mixText(mix []Share) string {
	parts := make([]string, len(mix))
	for i, s := range mix {
		parts[i] = s.Model + "=" + strconv.FormatFloat(s.Weight, 'g', -1, 64)
	}
	return strings.Join(parts, ",")
}

// Shares returns the models of Config.Models with weights that add up to 1.
func (c *Client) Shares() []Share {
	total, all := 0.0, slices.Clone(c.cfg.Models)
	for _, s := range all {
		total += s.Weight
	}
	for i := range all {
		all[i].Weight /= total
	}
	return all
}

// draw returns the model of a mix for a session or, if it is "", for a row.
func draw(mix []Share, seed uint64, session string, row int) string {
	total, below := 0.0, 0.0
	for _, s := range mix {
		total += s.Weight
	}
	x := trace.Draw(seed, "model", session, row) * total
	for _, s := range mix {
		if below += s.Weight; x < below {
			return s.Model
		}
	}
	return mix[len(mix)-1].Model // x was rounded to the total
}
