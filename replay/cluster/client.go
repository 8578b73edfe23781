package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// client talks to the leader over HTTP.
type client struct {
	http    http.Client
	address string // HOST:PORT
	token   string
	config  Config
}

func newClient(c Config) *client {
	transport := &http.Transport{ // ignores a proxy of the environment
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: 30 * time.Second,
	}
	return &client{http: http.Client{Transport: transport}, config: c, address: c.Address, token: c.Token}
}

// find reads the leader's address and token from the token file, unless both are
// configured. The file may be from an earlier run.
func (c *client) find() error {
	if c.config.Address != "" && c.config.Token != "" {
		return nil
	}
	m, err := readMeeting(c.config.Dir)
	if err != nil {
		return fmt.Errorf("no token: %w; the parts must share the folder, or %s must be set", err, TokenVariable)
	}
	if c.config.Token == "" {
		c.token = m.Token
	}
	if c.config.Address != "" {
		return nil
	}
	c.address = m.Address
	return nil
}

// requestTime is the time limit of a request, except for files.
const requestTime = pollTime + 2*time.Second

// post sends a message and reads the answer. Its error is a [*refusal] if the leader
// does not accept the message.
func (c *client) post(ctx context.Context, path string, message, answer any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return c.do(ctx, http.MethodPost, path, bytes.NewReader(text), answer)
}

func (c *client) do(ctx context.Context, method, path string, body io.Reader, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.address+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusConflict:
		return &refusal{short(strings.TrimSpace(string(text)))}
	case resp.StatusCode == http.StatusUnauthorized && c.config.Token != "":
		return refuse("wrong token: part 1 at %s has another %s", c.address, TokenVariable)
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("part 1 at %s answers %d: %s", c.address, resp.StatusCode, short(strings.TrimSpace(string(text))))
	case answer == nil:
		return nil
	}
	return json.Unmarshal(text, answer)
}
