package openai

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
