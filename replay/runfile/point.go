package runfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"moontide/replay/secret"
)

// Value is the value of a setting in one run of a set.
type Value struct {
	Setting string `json:"setting"`
	Text    string `json:"value"`
	Label   string `json:"label,omitempty"` // of a URL
}

// Point is the place of a run in a set: the values of the settings that differ between its
// runs. The zero Point is that of a run alone.
type Point struct {
	Name   string  `json:"name,omitempty"` // of the run, if the values do not say it
	Values []Value `json:"values,omitempty"`
	Repeat int     `json:"repeat,omitempty"` // counts the runs with the same values from 1, in a search
}

// Loads are the settings that set a load, the first in a point is its level.
var Loads = []string{"rate", "session-rate", "speedup", "max-concurrency", "max-sessions"}

// With returns the point with one more value.
func (p Point) With(v Value) Point {
	p.Values = append(slices.Clip(p.Values), v)
	return p
}

// Get returns the text of a setting, "" if the point has none.
func (p Point) Get(setting string) string {
	for _, v := range p.Values {
		if v.Setting == setting {
			return v.Text
		}
	}
	return ""
}

// Load returns the setting of the load and its level. setting is "" if there is none.
func (p Point) Load() (setting string, level float64) {
	for _, setting := range Loads {
		if text := p.Get(setting); text != "" {
			level, _ = strconv.ParseFloat(text, 64)
			return setting, level
		}
	}
	return "", 0
}

// Shape returns ISL:OSL, or "" if the point has no lengths.
func (p Point) Shape() string {
	isl, osl := p.Get("isl"), p.Get("osl")
	if isl == "" || osl == "" {
		return ""
	}
	return isl + ":" + osl
}

// others returns the values besides shape and load.
func (p Point) others() (values []Value) {
	load, _ := p.Load()
	shaped := p.Shape() != ""
	for _, v := range p.Values {
		if v.Setting != load && v.Setting != "limit" && !(shaped && (v.Setting == "isl" || v.Setting == "osl")) {
			values = append(values, v)
		}
	}
	return values
}

// Label names the values besides shape and load: "old", or "engines 2, routing prefix".
func (p Point) Label() string {
	var texts []string
	for _, v := range p.others() {
		if v.Label == "" {
			v.Label = v.Setting + " " + v.Text
		}
		texts = append(texts, v.Label)
	}
	return strings.Join(texts, ", ")
}

// String names the point: "baseline, 3000:150, concurrency 8".
func (p Point) String() string {
	if p.Name != "" {
		return p.Name
	}
	texts := []string{p.Label(), p.Shape()}
	if load, _ := p.Load(); load != "" {
		texts = append(texts, LoadName(load)+" "+p.Get(load))
	}
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ", ")
}

// LoadName names the setting of a load in texts and folders.
func LoadName(setting string) string { return strings.TrimPrefix(setting, "max-") }

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._]+`)

// Folder returns the name of the run's folder: baseline-3000-150-rate-2.5.
func (p Point) Folder() string {
	if p.Name != "" {
		return p.Name
	}
	texts := []string{p.Label(), p.Shape()}
	if load, _ := p.Load(); load != "" {
		texts = append(texts, LoadName(load)+"-"+p.Get(load))
	}
	var parts []string
	for _, text := range texts {
		if text = strings.Trim(unsafe.ReplaceAllString(text, "-"), "-"); text != "" {
			parts = append(parts, text)
		}
	}
	name := strings.Join(parts, "-")
	if name == "" {
		name = "run"
	}
	if p.Repeat > 1 {
		name += fmt.Sprintf("-repeat-%d", p.Repeat)
	}
	return name
}

// Masked returns the point without what may be secret in its URLs.
func (p Point) Masked() Point {
	p.Values = slices.Clone(p.Values)
	for i := range p.Values {
		if v := &p.Values[i]; v.Setting == "url" {
			v.Text = secret.URL(v.Text)
		}
	}
	return p
}

// Same reports whether two runs are at the same point, and the same repeat.
func (p Point) Same(o Point) bool {
	return p.Name == o.Name && p.Repeat == o.Repeat && slices.Equal(p.Values, o.Values)
}
