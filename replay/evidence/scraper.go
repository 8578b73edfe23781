package evidence

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay/runfile"
	"moontide/replay/secret"
)

// maxText limits the size of a metrics page in bytes. Large deployments have
// pages of one or two megabytes.
const maxText = 8 << 20

// defaultTimeout applies to a scrape without a deadline.
const defaultTimeout = 10 * time.Second

// Scraper reads the metrics of servers. It is safe for concurrent use.
type Scraper struct {
	urls   []*url.URL
	client fasthttp.Client
}

// New returns a [Scraper] for the URLs of Prometheus metrics, such as
// http://127.0.0.1:8000/metrics; a URL without a path gets /metrics. URLs with
// credentials are rejected, and no API key is sent. secure is for https; nil means
// the default.
func New(urls []string, secure *tls.Config) (*Scraper, error) {
	s := &Scraper{client: fasthttp.Client{
		Name: "moontide", MaxResponseBodySize: maxText,
		TLSConfig:                 secure,
		MaxIdemponentCallAttempts: 1,
		DialDualStack:             true,
		ConfigureClient:           func(c *fasthttp.HostClient) error { c.SecureErrorLogMessage = true; return nil },
	}}
	for _, text := range urls {
		u, err := parseURL(text)
		if err != nil {
			return nil, err
		}
		s.urls = append(s.urls, u)
	}
	return s, nil
}

// parseURL parses a URL. Its errors do not reveal secrets.
func parseURL(text string) (*url.URL, error) {
	if strings.Contains(text, "@") {
		return nil, errors.New("metrics URL must not have credentials")
	}
	place, _, _ := strings.Cut(text, "?")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("metrics URL is not http://host/metrics or https://host/metrics: %q", secret.URL(place))
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	u.Fragment = ""
	return u, nil
}

// Scrape reads the metrics of all servers and adds them up. It fails if any
// server fails, because a partial sum would look like the whole deployment. It
// returns when ctx ends.
func (s *Scraper) Scrape(ctx context.Context) (runfile.ServerFigures, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(defaultTimeout)
	}
	all, errs := page{}, make([]error, len(s.urls))
	var mu sync.Mutex // guards all
	var fetching sync.WaitGroup
	for i, u := range s.urls {
		fetching.Go(func() {
			p, err := s.fetch(u, deadline)
			if err != nil {
				errs[i] = fmt.Errorf("scraping %s://%s%s: %w", u.Scheme, u.Host, secret.Text(u.Path), err)
			}
			mu.Lock()
			defer mu.Unlock()
			for name, series := range p {
				all[name] = append(all[name], series...)
			}
		})
	}
	done := make(chan struct{})
	go func() { fetching.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return runfile.ServerFigures{}, ctx.Err()
		}
		<-done // the requests have the same deadline
	}
	if err := errors.Join(errs...); err != nil {
		return runfile.ServerFigures{}, err
	}
	return all.figures()
}

func (s *Scraper) fetch(u *url.URL, deadline time.Time) (page, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI(u.String())
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	if err := s.client.DoDeadline(req, resp, deadline); err != nil {
		return nil, err
	}
	if resp.StatusCode() != fasthttp.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode())
	}
	p := page{}
	return p, p.parse(bytes.NewReader(resp.Body()))
}
