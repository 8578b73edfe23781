package sessions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bytedance/sonic"

	"moontide/trace/jsonscan"
	"moontide/trace/log"
)

// clientKeys are the keys that can name the client of a row, the most specific
// first: unknown keys of a row, or of its object recorded.
var clientKeys = []string{
	"client", "client_id", "tenant", "tenant_id", "app", "app_id", "user", "user_id", "template", "template_id", "model", "type", "Log Type",
}

// recordedPrefix stands before keys in the object of a row in which formats keep what they
// do not use.
const recordedPrefix = log.RecordedKey + "."

const (
	// maxName is the longest value of a client key, in bytes of JSON.
	maxName = 256
	// A value is kept if at least this many rows have it.
	minNamed, maxMinNamed, namedShare = 5, 100, .05
	// reasonedParts are the parts of an answer in which its reasoning is counted.
	reasonedParts = 10_000
)

// label is an unknown key of rows and its value.
type label struct {
	Key   string `json:"key"`
	Value string `json:"value"` // JSON
}

// rank orders labels by their keys.
func (l label) rank() int { return slices.Index(clientKeys, strings.TrimPrefix(l.Key, recordedPrefix)) }

// name returns a string or a number as text, or "" for other values.
func (l label) name() string {
	var text string
	if sonic.UnmarshalString(l.Value, &text) == nil {
		return text
	}
	var number json.Number
	if sonic.UnmarshalString(l.Value, &number) != nil {
		return ""
	}
	return number.String()
}

// isName reports whether a label can name a client.
func (l label) isName() bool { return l.rank() >= 0 && len(l.Value) <= maxName && l.name() != "" }

// client is a combination of labels that rows have.
type client struct {
	name  string
	extra []byte // unknown keys of a row
}

// setClients derives the clients from their labels.
func (m *Model) setClients() {
	m.clients = nil
	for i, labels := range m.Labels {
		c := client{extra: extraOf(labels)}
		for _, l := range labels {
			c.name += "/" + l.name()
		}
		if c.name = strings.TrimPrefix(c.name, "/"); i == 0 && len(m.Labels) > 1 {
			c.name = "rest"
		}
		m.clients = append(m.clients, c)
	}
}

// extraOf returns the unknown keys of a row with these labels.
func extraOf(labels []label) []byte {
	var top, inside jsonscan.Object
	for _, l := range labels {
		if name, recorded := strings.CutPrefix(l.Key, recordedPrefix); recorded {
			inside.Add(name, []byte(l.Value))
		} else {
			top.Add(l.Key, []byte(l.Value))
		}
	}
	top.Add(log.RecordedKey, inside.Bytes())
	return top.Bytes()
}

// extra returns the unknown keys of the row of a turn.
func (m *Model) extra(t *turn) []byte {
	if t.Reasoned == 0 {
		return m.clients[t.Client].extra
	}
	tokens := ((t.Reasoned-1)*t.OSL + reasonedParts/2) / reasonedParts
	return extraOf(append(slices.Clone(m.Labels[t.Client]), label{m.ReasoningKey, strconv.Itoa(tokens)}))
}

// readKeys reads the labels and the reasoning of a row from its unknown keys, or from its
// object recorded.
func (f *fitter) readKeys(r *row, prefix string, object []byte) {
	// Its only error is a key that is given twice; the first one counts.
	_ = jsonscan.Members(object, func(key []byte, _ int, raw []byte) error {
		l := label{prefix + string(key), string(raw)}
		switch {
		case l.Key == log.RecordedKey && raw[0] == '{':
			f.readKeys(r, recordedPrefix, raw)
		case l.isName():
			r.labels = append(r.labels, l)
			f.labels[l]++
		case slices.Contains(log.ReasoningKeys, string(key)) && (f.ReasoningKey == "" || f.ReasoningKey == l.Key):
			tokens, ok := log.ReasoningTokens(raw, r.OSL)
			if !ok {
				f.badReasoning++
			}
			if tokens.Set {
				f.ReasoningKey = l.Key
				r.Reasoned = 1 + tokens.Value*reasonedParts/max(1, r.OSL)
			}
		}
		return nil
	})
}

// nameClients sets the clients of the rows: combinations of labels that enough rows have.
func (f *fitter) nameClients() {
	least := max(minNamed, min(maxMinNamed, int(namedShare*float64(len(f.rows)))))
	rare, keys := 0, map[string]bool{}
	for l, n := range f.labels {
		if n < least {
			rare += n
			keys[l.Key] = true
		}
	}
	if rare > 0 {
		f.note("%d values of %s are left out: fewer than %d requests have them", rare, strings.Join(slices.Sorted(maps.Keys(keys)), ", "), least)
	}
	f.Labels = [][]label{{}}
	numbers := map[string]int{"": 0}
	for i := range f.rows {
		labels := slices.DeleteFunc(f.rows[i].labels, func(l label) bool { return f.labels[l] < least })
		slices.SortFunc(labels, func(a, b label) int { return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Key, b.Key)) })
		extra := string(extraOf(labels))
		n, known := numbers[extra]
		if !known {
			n = len(f.Labels)
			numbers[extra] = n
			f.Labels = append(f.Labels, labels)
		}
		f.rows[i].Client = n
	}
	f.setClients()
}

// Client describes a client of a model.
type Client struct {
	Name     string // "" if rows name no clients
	Requests int    // of the source
	Sessions int    // of the source
	ISL, OSL float64
}

// Clients returns the clients of the model, the largest first. The last may be
// "rest", which stands for those with few requests. The client of a session is that of
// its first request.
func (m *Model) Clients() []Client {
	all := make([]Client, len(m.clients))
	for i := range m.Sessions {
		turns := m.Sessions[i]
		c := &all[turns[0].Client]
		c.Name = m.clients[turns[0].Client].name
		c.Sessions++
		c.Requests += len(turns)
		for k := range turns {
			c.ISL += float64(m.islOf(&turns[k]))
			c.OSL += float64(turns[k].OSL)
		}
	}
	for i := range all {
		all[i].ISL /= float64(all[i].Requests)
		all[i].OSL /= float64(all[i].Requests)
	}
	slices.SortStableFunc(all[1:], func(a, b Client) int { return b.Requests - a.Requests })
	return slices.DeleteFunc(append(all[1:], all[0]), func(c Client) bool { return c.Requests == 0 })
}

// Only returns the model with the sessions of one client.
func (m *Model) Only(name string) (*Model, error) {
	var names []string
	for _, c := range m.Clients() {
		names = append(names, strconv.Quote(c.Name))
	}
	switch {
	case slices.Equal(names, []string{`""`}):
		return nil, errors.New("the rows of the source name no clients")
	case !slices.Contains(names, strconv.Quote(name)):
		return nil, fmt.Errorf("no client %q: the model has %s", name, strings.Join(names, ", "))
	}
	only := *m
	only.Sessions = nil
	for _, turns := range m.Sessions {
		if m.clients[turns[0].Client].name == name {
			only.Sessions = append(only.Sessions, turns)
		}
	}
	return &only, nil
}
