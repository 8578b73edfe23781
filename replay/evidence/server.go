package evidence

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay/runfile"
)

// maxText bounds a metrics page in bytes. Those of large deployments have one or
// two megabytes.
const maxText = 8 << 20

// defaultTimeout applies to a scrape without a deadline.
const defaultTimeout = 10 * time.Second

// Scraper reads the metrics of servers. It may be used by many goroutines.
type Scraper struct {
	urls   []*url.URL
	client fasthttp.Client
}

// New checks the URLs of Prometheus metrics, such as
// http://127.0.0.1:8000/metrics; a URL without a path gets /metrics. URLs with
// credentials are refused, and no API key is sent. roots are the CAs for https;
// nil is the system's.
func New(urls []string, roots *x509.CertPool) (*Scraper, error) {
	s := &Scraper{client: fasthttp.Client{
		Name: "moontide", MaxResponseBodySize: maxText,
		TLSConfig:                 &tls.Config{RootCAs: roots},
		MaxIdemponentCallAttempts: 1,
		DialDualStack:             true,
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

// parseURL parses a URL. Its errors show nothing that may be secret.
func parseURL(text string) (*url.URL, error) {
	if strings.Contains(text, "@") {
		return nil, errors.New("metrics URL must not have credentials")
	}
	place, _, _ := strings.Cut(text, "?")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("metrics URL is not http://host/metrics or https://host/metrics: %q", place)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	u.Fragment = ""
	return u, nil
}

// Scrape reads the metrics of all servers and adds them up. It fails if one
// server fails: half a deployment would look like all of it. It returns when ctx
// ends.
func (s *Scraper) Scrape(ctx context.Context) (runfile.ServerFigures, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(defaultTimeout)
	}
	type page struct {
		series []series
		err    error
	}
	pages := make(chan page, len(s.urls))
	for _, u := range s.urls {
		go func() {
			all, err := s.fetch(u, deadline)
			if err != nil {
				err = fmt.Errorf("scraping %s://%s%s: %w", u.Scheme, u.Host, u.Path, err)
			}
			pages <- page{all, err}
		}()
	}
	var all []series
	var errs []error
	for range s.urls {
		select {
		case p := <-pages:
			all, errs = append(all, p.series...), append(errs, p.err)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return runfile.ServerFigures{}, ctx.Err()
			}
			p := <-pages // the deadline is also that of the request
			all, errs = append(all, p.series...), append(errs, p.err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return runfile.ServerFigures{}, err
	}
	return figures(all)
}

func (s *Scraper) fetch(u *url.URL, deadline time.Time) ([]series, error) {
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
	return parse(bytes.NewReader(resp.Body()))
}
