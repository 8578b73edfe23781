package main

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/net/http/httpproxy"

	"moontide/replay/openai"
)

// networkFlags returns the flags for the way to the endpoint.
func networkFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "proxy", Category: inTarget, Usage: "`URL` of an HTTP, HTTPS or SOCKS5 proxy, or none", DefaultText: "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; none for loopback"},
		&cli.StringFlag{Name: "ca-file", Category: inTarget, Usage: "`FILE`: CA bundle (PEM) used instead of the system's"},
		&cli.BoolFlag{Name: "insecure", Category: inTarget, Usage: "do not verify the certificate of an https endpoint"},
	}
}

// setNetwork sets proxy and TLS of connections to the endpoint.
func setNetwork(c *cli.Context, cfg *openai.Config) error {
	secure := slices.ContainsFunc(cfg.URLs, func(url string) bool { return len(url) > 6 && strings.EqualFold(url[:6], "https:") })
	if flag := firstGivenOf(c, "ca-file", "insecure"); flag != "" && !secure {
		return misused("replay: --%s is for https, but no --url is https", flag)
	}
	switch {
	case c.IsSet("proxy") && len(cfg.URLs) == 0:
		return misused("replay: --proxy needs --url")
	case c.Bool("insecure") && c.IsSet("ca-file"):
		return misused("replay: --insecure checks no certificate, so --ca-file has no effect: omit one")
	}
	cfg.Insecure = c.Bool("insecure")
	var err error
	if cfg.Proxy, err = proxyOf(c); err == nil && c.IsSet("ca-file") {
		cfg.RootCAs, err = readCAs(c.String("ca-file"))
	}
	return err
}

// proxyOf returns the proxy function of --proxy or of the environment.
func proxyOf(c *cli.Context) (func(*url.URL) (*url.URL, error), error) {
	text := c.String("proxy")
	switch {
	case !c.IsSet("proxy"):
		return environmentProxy(os.Getenv), nil
	case text == "none":
		return nil, nil
	case !strings.Contains(text, "://"):
		text = "http://" + text
	}
	proxy, err := url.Parse(text)
	if err != nil || proxy.Hostname() == "" || strings.Trim(proxy.Path, "/") != "" || proxy.RawQuery != "" || proxy.Fragment != "" {
		// Do not show the text: it may have a password.
		return nil, misused("replay: --proxy is neither none nor a URL such as http://proxy:3128")
	}
	return func(*url.URL) (*url.URL, error) { return proxy, nil }, nil
}

// environmentProxy chooses proxies as curl and Go do. Loopback addresses have none.
func environmentProxy(getenv func(string) string) func(*url.URL) (*url.URL, error) {
	get := func(name string) string { return cmp.Or(getenv(strings.ToLower(name)), getenv(name)) }
	all := get("ALL_PROXY")
	env := httpproxy.Config{HTTPProxy: cmp.Or(get("HTTP_PROXY"), all), HTTPSProxy: cmp.Or(get("HTTPS_PROXY"), all), NoProxy: get("NO_PROXY")}
	return env.ProxyFunc()
}

// maxPEM is larger than any CA bundle, in bytes.
const maxPEM = 16 << 20

// readCAs reads a CA bundle. Errors do not show the contents of the file, which may be a key.
func readCAs(path string) (*x509.CertPool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading --ca-file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPEM))
	if err != nil {
		return nil, fmt.Errorf("reading --ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading --ca-file: %s has no certificate in PEM", path)
	}
	return pool, nil
}
