package enginefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"moontide/replay/sim/engine"
	"moontide/trace/routing"
)

// settings are the members of a JSON object with parameters, in their order.
type settings []setting

type setting struct {
	name  string
	value json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (s settings) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, member := range s {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(member.name)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), member.value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *settings) UnmarshalJSON(text []byte) error {
	in := json.NewDecoder(bytes.NewReader(text))
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("want an object with settings, not %.20s", text)
	}
	*s = settings{}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		if slices.ContainsFunc(*s, func(other setting) bool { return other.name == name }) {
			return fmt.Errorf("two keys %q", name)
		}
		*s = append(*s, setting{name.(string), value})
	}
	return nil
}

const routingKey = "routing"

// Keys returns the keys of section "deployment" or, with ofEngine, of those of engines.
func Keys(ofEngine bool) (keys []string) {
	for _, p := range engine.Parameters {
		if (p.OfEngine != nil) == ofEngine {
			keys = append(keys, p.Name)
		}
	}
	if !ofEngine {
		keys = append(keys, routingKey)
	}
	return keys
}

// deployment returns the deployment of a file.
func (c *content) deployment() (d engine.Deployment, err error) {
	if c.Engine == nil {
		return d, fmt.Errorf("no section %q", "engine")
	}
	if err := set(&d, "deployment", c.Deployment, false); err != nil {
		return d, err
	}
	if err := set(&d, "engine", c.Engine, true); err != nil {
		return d, err
	}
	if c.DecodeEngine == nil {
		return d, nil
	}
	var decode engine.Deployment
	if err := set(&decode, "decode-engine", c.DecodeEngine, true); err != nil {
		return d, err
	}
	d.DecodeEngine = &decode.Engine
	if !d.Disaggregated() {
		return d, fmt.Errorf("decode-engine: the deployment has no decode engines: set prefill-engines and decode-engines")
	}
	return d, nil
}

// set sets the settings of a section.
func set(d *engine.Deployment, section string, all settings, ofEngine bool) error {
	for _, s := range all {
		path := section + "." + s.name
		text := string(s.value)
		if len(s.value) > 0 && s.value[0] == '"' {
			if err := json.Unmarshal(s.value, &text); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		p, found := engine.FindParameter(s.name)
		switch {
		case !ofEngine && s.name == routingKey:
			policy, err := routing.Parse(text)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			d.Routing = policy
			continue
		case !found || (p.OfEngine != nil) != ofEngine:
			return fmt.Errorf("%s: unknown setting; the settings of this section are %s", path, strings.Join(Keys(ofEngine), ", "))
		}
		if err := p.Set(d, text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func contentOf(d *engine.Deployment) content {
	c := content{Format: fileFormat, Version: fileVersion, Deployment: settingsOf(d, false), Engine: settingsOf(d, true)}
	if d.Routing != "" {
		c.Deployment = append(c.Deployment, setting{routingKey, quoted(string(d.Routing))})
	}
	if d.DecodeEngine != nil {
		c.DecodeEngine = settingsOf(&engine.Deployment{Engine: *d.DecodeEngine}, true)
	}
	return c
}

// settingsOf returns the settings that are not 0.
func settingsOf(d *engine.Deployment, ofEngine bool) settings {
	all := settings{}
	for _, p := range engine.Parameters {
		if (p.OfEngine != nil) != ofEngine || p.IsZero(d) {
			continue
		}
		text := p.Text(d)
		value := quoted(text)
		switch p.Field(d).(type) {
		case *int, *bool:
			value = json.RawMessage(text)
		}
		all = append(all, setting{p.Name, value})
	}
	return all
}

func quoted(text string) json.RawMessage {
	b, _ := json.Marshal(text) // of a string, it does not fail
	return b
}
