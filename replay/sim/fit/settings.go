package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"moontide/replay/sim/engine"
	"moontide/trace/routing"
)

// settings are parameters by name: numbers, true and false, or texts.
type settings map[string]any

const routingKey = "routing"

// keys returns the keys of section "deployment" or, with ofEngine, of those of engines.
func keys(ofEngine bool) (all []string) {
	for _, p := range engine.Parameters {
		if (p.OfEngine != nil) == ofEngine {
			all = append(all, p.Name)
		}
	}
	if !ofEngine {
		all = append(all, routingKey)
	}
	return all
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
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := fmt.Sprint(all[name])
		p, found := engine.FindParameter(name)
		var err error
		switch {
		case !ofEngine && name == routingKey:
			d.Routing, err = routing.Parse(text)
		case !found || (p.OfEngine != nil) != ofEngine:
			err = fmt.Errorf("unknown setting; the settings of this section are %s", strings.Join(keys(ofEngine), ", "))
		default:
			err = p.Set(d, text)
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", section, name, err)
		}
	}
	return nil
}

// settingsOf returns the settings that are not 0.
func settingsOf(d *engine.Deployment, ofEngine bool) settings {
	all := settings{}
	for _, p := range engine.Parameters {
		if (p.OfEngine != nil) != ofEngine || p.IsZero(d) {
			continue
		}
		switch field := p.Field(d).(type) {
		case *int:
			all[p.Name] = *field
		case *bool:
			all[p.Name] = *field
		default:
			all[p.Name] = p.Text(d)
		}
	}
	if !ofEngine && d.Routing != "" {
		all[routingKey] = d.Routing
	}
	return all
}
