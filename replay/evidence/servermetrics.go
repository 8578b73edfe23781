// Package servermetrics asks servers for what they say of themselves: their
// metrics in Prometheus' text format, under the names of vLLM, SGLang,
// TensorRT-LLM and Dynamo.
//
// [New] checks where to ask, [Scraper.Scrape] asks once, and [Parse] reads a
// text that was got otherwise.
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

// maxText bounds what is read of a server's metrics, in bytes. Those of a large
// deployment take a megabyte or two.
const maxText = 8 << 20

// Scraper asks servers. It may be used by many goroutines.
type Scraper struct {
	urls   []*url.URL
	client fasthttp.Client
}

// New checks URLs of metrics, such as http://127.0.0.1:8000/metrics; one without
// a path gets /metrics. Nothing that may be secret is sent or taken: no API key,
// and no credentials in a URL. roots are who may vouch for an https server; nil
// is whom the system trusts.
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

// parseURL prints no part of a URL that may be a secret.
func parseURL(text string) (*url.URL, error) {
	if strings.Contains(text, "@") {
		return nil, errors.New("metrics URL has credentials in it, which are not taken")
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

// Scrape asks all servers and sums up what they said. It fails where one does,
// since half a deployment's figures would look like the whole's. The context's
// deadline is obeyed; one without is given ten seconds.
func (s *Scraper) Scrape(ctx context.Context) (runfile.ServerFigures, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(10 * time.Second)
	}
	type reply struct {
		series []series
		err    error
	}
	replies := make(chan reply, len(s.urls))
	for _, u := range s.urls {
		go func() {
			all, err := s.fetch(u, deadline)
			replies <- reply{all, err}
		}()
	}
	var all []series
	var errs []error
	for range s.urls {
		r := <-replies
		all, errs = append(all, r.series...), append(errs, r.err)
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
		return nil, fmt.Errorf("asking %s: %w", place(u), err)
	}
	if resp.StatusCode() != fasthttp.StatusOK {
		return nil, fmt.Errorf("asking %s: HTTP status %d", place(u), resp.StatusCode())
	}
	all, err := parse(bytes.NewReader(resp.Body()))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", place(u), err)
	}
	return all, nil
}

// place is a URL without what may be a secret.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }
