package sessions

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bytedance/sonic"

	"moontide/trace/log"
)

// Client describes a client of a model.
type Client struct {
	Name     string  // "" if the model has one client without a name
	Requests int     // of the source
	Sessions int     // of the source
	ISL, OSL float64 // means of the source, in tokens
	// CV is the coefficient of variation of the gaps between arrivals, relative to
	// the rate of their time. 0: not a renewal process.
	CV           float64
	Distribution string // of the gaps: gamma or weibull; "" if it is another one
}

// Clients returns the clients of the model, the largest first. One that stands
// for the clients with few requests is last.
func (m *Model) Clients() []Client {
	clients := make([]Client, len(m.clients))
	for i := range m.clients {
		c := &m.clients[i]
		clients[i] = Client{Name: c.Name, Requests: c.Requests, Sessions: c.Sessions, ISL: c.MeanISL, OSL: c.MeanOSL}
		if r := c.Arrivals.Renewal; r != nil {
			clients[i].CV, clients[i].Distribution = r.cv(), r.Distribution
		}
	}
	return clients
}

// Only returns the model with one of its clients, which draws the same requests as
// with the others, apart from ids. [Model.WriteTo] still writes all clients. The
// error lists the names.
func (m *Model) Only(name string) (*Model, error) {
	i := slices.IndexFunc(m.clients, func(c client) bool { return c.Name == name })
	if i < 0 || name == "" {
		if len(m.clients) == 1 && m.clients[0].Name == "" {
			return nil, fmt.Errorf("no client %q: the model has one client without a name", name)
		}
		names := make([]string, len(m.clients))
		for i := range m.clients {
			names[i] = strconv.Quote(m.clients[i].Name)
		}
		return nil, fmt.Errorf("no client %q: the model has %s", name, strings.Join(names, ", "))
	}
	only := *m
	only.clients = m.clients[i : i+1]
	return &only, nil
}

// clientKey is a key of the rows that names clients, and the type of its values,
// [textValue] or [numberValue].
type clientKey [2]string

const (
	textValue   = "string"
	numberValue = "number"
)

// recorded is the object of a row in which formats keep what they do not use.
// Its members are keys with this prefix.
const (
	recorded       = log.RecordedKey
	recordedPrefix = recorded + "."
)

// clientKeys are the keys that can name the client of a row, the most specific
// first: unknown keys of a row, or of its object recorded.
var clientKeys = []string{
	"client", "client_id", "tenant", "tenant_id", "app", "app_id", "user", "user_id", "template", "template_id", "model", "type", "Log Type",
}

func isClientKey(key string) bool {
	return slices.Contains(clientKeys, strings.TrimPrefix(key, recordedPrefix))
}

// extraOf returns a row's unknown keys with these values.
func extraOf(keys []clientKey, values []string) []byte {
	var top, inside []string
	for i, key := range keys {
		value := values[i]
		if key[1] == textValue {
			value = quote(value)
		}
		if name, ok := strings.CutPrefix(key[0], recordedPrefix); ok {
			inside = append(inside, quote(name)+": "+value)
		} else {
			top = append(top, quote(key[0])+": "+value)
		}
	}
	if len(inside) > 0 {
		top = append(top, quote(recorded)+": {"+strings.Join(inside, ", ")+"}")
	}
	if len(top) == 0 {
		return nil
	}
	return []byte("{" + strings.Join(top, ", ") + "}")
}

// quote returns a JSON string.
func quote(text string) string {
	quoted, _ := sonic.MarshalString(text) // never fails for a string
	return quoted
}

// isNumber reports whether a text is a JSON number of moderate size.
func isNumber(text string) bool {
	x, err := strconv.ParseFloat(text, 64)
	return err == nil && !math.IsInf(x, 0) && sonic.ValidString(text)
}
