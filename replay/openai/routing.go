package openai

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"moontide/trace"
)

// Values of Config.SessionHeader.
const (
	// DefaultSessionHeader names the session of a request, so that a router can
	// send its turns to the worker that has cached their prefix.
	DefaultSessionHeader = "X-Session-ID"
	// NoSessionHeader sends no such header.
	NoSessionHeader = "none"
)

// NamedModel is a model that rows of a trace name.
type NamedModel struct {
	Name string
	Line int // of the first of these rows in the trace; 0 if unknown
}

func (m NamedModel) place() string {
	if m.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" in line %d of the trace", m.Line)
}

// RowModel returns the model that a row names, or "".
func RowModel(r trace.Request) string {
	name, _ := r.Text("model")
	return name
}

// modelOf returns the model for a row: its own, or one drawn from the mix, or the
// only one. It depends only on the row, its number and the seed.
func (c *Client) modelOf(r trace.Request, row int) string {
	if c.cfg.ModelFromTrace {
		if name := RowModel(r); name != "" {
			return name
		}
	}
	if mix := c.cfg.Models; len(mix) > 0 {
		return draw(mix, c.cfg.Source.Seed, r.SessionID, row)
	}
	return c.cfg.Model
}

func (c *Client) severalModels() bool { return c.cfg.ModelFromTrace || len(c.cfg.Models) > 0 }

// allModels returns the models that requests may name if there are several.
func (cfg *Config) allModels() (all []NamedModel) {
	for _, s := range cfg.Models {
		all = append(all, NamedModel{Name: s.Model})
	}
	for _, m := range cfg.TraceModels {
		if m.Name != "" {
			all = append(all, m)
		}
	}
	return all
}

// allNamed reports whether every row is known to name its model.
func (cfg *Config) allNamed() bool {
	return cfg.ModelFromTrace && len(cfg.TraceModels) > 0 && !slices.ContainsFunc(cfg.TraceModels, func(m NamedModel) bool { return m.Name == "" })
}

// firstModel returns the model of the probe, "" if the endpoint has to tell.
func (cfg *Config) firstModel() string {
	switch {
	case len(cfg.Models) > 0:
		return cfg.Models[0].Model
	case cfg.Model == "" && cfg.allNamed():
		return cfg.TraceModels[0].Name
	}
	return cfg.Model
}

func (cfg *Config) checkRouting() error {
	if err := checkMix(cfg.Models); err != nil {
		return err
	}
	if cfg.Endpoint == Generate && (cfg.ModelFromTrace || len(cfg.Models) > 0) {
		return errors.New("requests of the generate endpoint name no model, so they cannot name several")
	}
	name := cfg.SessionHeader
	if name == NoSessionHeader {
		return nil
	}
	if err := (Header{Name: name}).check(); err != nil {
		return fmt.Errorf("session header %q: %w", name, err)
	}
	switch strings.ToLower(name) {
	case "host", "content-type", "user-agent", "accept", "authorization", "cookie", "set-cookie":
		return fmt.Errorf("session header %q has another purpose in HTTP", name)
	}
	return nil
}

// addSession adds the session to the head of a request.
func (c *Client) addSession(head *fasthttp.RequestHeader, session string) {
	if name := c.cfg.SessionHeader; session != "" && name != NoSessionHeader && len(head.Peek(name)) == 0 {
		head.Set(name, sessionName(session))
	}
}

// sessionName returns a session's name in a form allowed in a header: long names
// and names with unusual characters are hashed.
func sessionName(session string) string {
	const longest = 128 // bytes
	unusual := strings.ContainsFunc(session, func(c rune) bool { return c <= ' ' || c >= 0x7f })
	if unusual || len(session) > longest {
		return "x" + strconv.FormatUint(xxhash.Sum64String(session), 16)
	}
	return session
}

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

// MixText returns a mix in the form that ParseModels parses.
func MixText(mix []Share) string {
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
