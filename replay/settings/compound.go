package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"moontide/replay/openai"
	"moontide/replay/prompt"
	"moontide/replay/sim/engine"
)

// text is a string of a named type.
type text[T ~string] string

func (t *text[T]) Set(value string) error { *t = text[T](value); return nil }
func (t *text[T]) String() string         { return string(*t) }

// named is a boolean with names for false and true.
type named struct {
	value   *bool
	no, yes string
}

func (n *named) Set(text string) error { *n.value = text == n.yes; return nil }

func (n *named) clear() { *n.value = false }

func (n *named) String() string {
	if *n.value {
		return n.yes
	}
	return n.no
}

// seconds is a duration in seconds.
type seconds float64

func (s *seconds) Set(text string) error {
	d, err := ParseDuration(text)
	*s = seconds(d.Seconds())
	return err
}

func (s *seconds) String() string {
	return formatDuration(time.Duration(float64(*s) * float64(time.Second)))
}

// models are the model or the mix of models.
type models struct{ *openai.Config }

func (m *models) Set(text string) (err error) {
	m.Model, m.Models, err = openai.ParseModels(text)
	return err
}

func (m *models) clear() { m.Model, m.Models = "", nil }

func (m *models) String() string {
	if len(m.Models) == 0 {
		return m.Model
	}
	return openai.MixText(m.Models)
}

// headers are HTTP headers. Errors do not show their text: it may be a secret value.
type headers struct{ list *[]openai.Header }

func (h *headers) Set(text string) error {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		return fmt.Errorf("number %d is not 'Name: value'", len(*h.list)+1)
	}
	*h.list = append((*h.list)[:len(*h.list):len(*h.list)], openai.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	return nil
}

func (h *headers) clear() { *h.list = nil }

func (h *headers) String() string { return strings.Join(h.Texts(), ", ") }

// Texts returns one text for each header.
func (h *headers) Texts() (texts []string) {
	for _, header := range *h.list {
		texts = append(texts, header.Name+": "+header.Value)
	}
	return texts
}

// certificates say how certificates are verified.
type certificates struct{ *Settings }

func (c *certificates) Set(text string) error {
	file, isFile := strings.CutPrefix(text, "ca=")
	switch {
	case text == "insecure":
		c.Client.Insecure, c.CAFile = true, ""
	case isFile && file != "":
		c.Client.Insecure, c.CAFile = false, file
	default:
		return fmt.Errorf("%.40q is neither insecure nor ca=FILE", text)
	}
	return nil
}

func (c *certificates) clear() { c.Client.Insecure, c.CAFile = false, "" }

func (c *certificates) String() string {
	switch {
	case c.Client.Insecure:
		return "insecure"
	case c.CAFile != "":
		return "ca=" + c.CAFile
	}
	return ""
}

// tokenRange is the range of token ids.
type tokenRange struct{ *prompt.Source }

func (r *tokenRange) Set(text string) error {
	first, last, ok := strings.Cut(text, ":")
	low, errLow := strconv.ParseUint(first, 10, 32)
	high, errHigh := strconv.ParseUint(last, 10, 32)
	if !ok || errLow != nil || errHigh != nil || low == 0 || high == 0 {
		return fmt.Errorf("%.40q is not LO:HI with token ids from 1 to 4294967295", text)
	}
	r.Low, r.High = uint32(low), uint32(high)
	return nil
}

func (r *tokenRange) clear() { r.Low, r.High = 0, 0 }

func (r *tokenRange) String() string {
	if r.Low == 0 && r.High == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%d", r.Low, r.High)
}

// timeouts are the time limits of a request; 0 is the default.
type timeouts struct{ *openai.Config }

func (t *timeouts) fields() []*time.Duration {
	return []*time.Duration{&t.Timeout, &t.FirstByteTimeout, &t.IdleTimeout}
}

func (t *timeouts) Set(text string) (err error) {
	parts := strings.Split(text, ",")
	if len(parts) > len(t.fields()) {
		return fmt.Errorf("%.40q has more than three times: TOTAL,FIRST,IDLE", text)
	}
	for i, part := range parts {
		if part = strings.TrimSpace(part); part == "" && i < len(parts)-1 {
			continue // keeps the default
		}
		d, err := ParseDuration(part)
		if err != nil {
			return err
		}
		if d == 0 {
			return fmt.Errorf("must be positive: %.40s", text)
		}
		*t.fields()[i] = d
	}
	return nil
}

func (t *timeouts) clear() { t.Timeout, t.FirstByteTimeout, t.IdleTimeout = 0, 0, 0 }

func (t *timeouts) String() string {
	var parts []string
	for i, field := range t.fields() {
		if *field == 0 {
			continue
		}
		for len(parts) < i {
			parts = append(parts, "")
		}
		parts = append(parts, formatDuration(*field))
	}
	return strings.Join(parts, ",")
}

// limits are the limits of the verdict.
type limits struct{ *Thresholds }

// shares returns the limits that are shares, by name.
func (l *limits) shares() []struct {
	name  string
	value *float64
} {
	return []struct {
		name  string
		value *float64
	}{{"lag-share", &l.MaxLagShare}, {"failed", &l.MaxFailed}, {"prompts", &l.MaxPromptsOff}, {"responses", &l.MaxAnswersOff}}
}

func (l *limits) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return fmt.Errorf("%.40q is not NAME=LIMIT, such as lag=10ms or failed=5%%", part)
		}
		if err := l.set(strings.ReplaceAll(name, "_", "-"), value); err != nil {
			return err
		}
	}
	return nil
}

func (l *limits) set(name, value string) error {
	if name == "lag" {
		d, err := ParseDuration(value)
		if err == nil && d == 0 {
			err = errors.New("must be positive: 0")
		}
		l.MaxLagMS = float64(d) / float64(time.Millisecond)
		return err
	}
	names := []string{"lag"}
	for _, s := range l.shares() {
		if names = append(names, s.name); s.name != name {
			continue
		}
		number, percent := strings.CutSuffix(value, "%")
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if percent {
			x /= 100
		}
		if err != nil || !(x > 0 && x <= 1) {
			return fmt.Errorf("the limit %s must be above 0 and at most 1, or 100%%: %.40q", name, value)
		}
		*s.value = x
		return nil
	}
	return fmt.Errorf("%.40q is no limit of the verdict: use %s", name, listed(names))
}

func (l *limits) clear() { *l.Thresholds = Thresholds{} }

func (l *limits) String() string {
	var parts []string
	if l.MaxLagMS != 0 {
		parts = append(parts, "lag="+formatDuration(time.Duration(l.MaxLagMS*float64(time.Millisecond))))
	}
	for _, s := range l.shares() {
		if *s.value != 0 {
			parts = append(parts, s.name+"="+FormatNumber(*s.value))
		}
	}
	return strings.Join(parts, ",")
}

// parameter is a setting of engines that is a time, a table or a name. A number is in
// seconds.
type parameter struct {
	engine.Parameter
	d *engine.Deployment
}

func (p parameter) Set(text string) error {
	switch p.Field(p.d).(type) {
	case *engine.Cost, *time.Duration:
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			text += "s"
		}
	}
	return p.Parameter.Set(p.d, text)
}

func (p parameter) clear() {
	d := engine.Default()
	assign(p.Field(p.d), p.Field(&d))
}

func (p parameter) String() string { return p.Text(p.d) }
