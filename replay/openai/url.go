package openai

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"moontide/replay/secret"
)

// address is what a URL of a Config names. Its paths are escaped.
type address struct {
	scheme, host string // host is host:port or host
	prefix       string // of all paths, without the version of the API
	version      string // of the API: /v1 unless the URL has another one, or none
	path         string // of requests; "" unless the URL names it
	endpoint     string // that path names, or ""
	deployment   string // that the path names, as Azure's does, or ""
	query        string // of all requests
}

var (
	// versionPath is a version of an API at the end of a path: /v1, /v4, /v1beta.
	versionPath = regexp.MustCompile(`/v[0-9]+((alpha|beta)[0-9]*)?$`)
	// deploymentPath is a deployment of a model at the end of a path. Its API has no
	// version in the path.
	deploymentPath = regexp.MustCompile(`/deployments/([^/]+)$`)
)

// defaultVersion is the version in the paths of the APIs.
const defaultVersion = "/v1"

// parseAddress parses a URL: a server, with or without the version of its API, or
// the endpoint to which requests go. Errors do not contain parts that may be secret.
func parseAddress(text string) (*address, error) {
	place, query, queried := strings.Cut(text, "?")
	if strings.Contains(place, "@") {
		return nil, errors.New("url has credentials in it: use a header or an API key")
	}
	u, err := url.Parse(place)
	switch {
	case place != "" && !strings.Contains(place, "://"):
		return nil, fmt.Errorf("url is not http://host or https://host: %q: write %q", secret.URL(place), "http://"+secret.URL(place))
	case err != nil:
		return nil, fmt.Errorf("url does not parse: %q", secret.URL(place))
	case u.Scheme == "unix":
		return nil, fmt.Errorf("url is not http://host or https://host: %q: put a proxy such as nginx before the Unix socket", secret.URL(place))
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("url is not http://host or https://host: %q", secret.URL(place))
	case u.Fragment != "" || strings.Contains(query, "#"):
		return nil, errors.New("url has a fragment: omit what follows the #")
	case queried && !goodQuery(query):
		return nil, errors.New("url has a query that does not parse: write key=value&key=value, with special characters as %XX")
	}
	a := &address{scheme: u.Scheme, host: u.Host, query: query}
	given := strings.TrimRight(u.EscapedPath(), "/")
	if a.endpoint, a.prefix = namedEndpoint(given); a.endpoint != "" {
		a.path = given
	}
	a.cutVersion()
	if named := apiOf(a.endpoint); named != nil {
		if end, versioned := strings.CutPrefix(named.path, defaultVersion); versioned && a.path == a.prefix+end {
			a.version = "" // the URL has none
		}
	}
	return a, nil
}

// cutVersion moves the version of the API from the prefix.
func (a *address) cutVersion() {
	a.version = defaultVersion
	if version := versionPath.FindString(a.prefix); version != "" {
		a.prefix, a.version = strings.TrimSuffix(a.prefix, version), version
	} else if named := deploymentPath.FindStringSubmatch(a.prefix); named != nil {
		a.version = ""
		a.deployment = named[1]
		if name, err := url.PathUnescape(named[1]); err == nil && oneLine(name) == name {
			a.deployment = name
		}
	}
}

// namedEndpoint returns the endpoint whose path, with any version or none, a path
// ends with, and what is before it; "" and the path if there is none.
func namedEndpoint(path string) (endpoint, before string) {
	longest := ""
	for _, a := range apis {
		end := strings.TrimPrefix(a.path, defaultVersion)
		if strings.HasSuffix(path, end) && len(end) > len(longest) {
			endpoint, longest = a.name, end
		}
	}
	return endpoint, strings.TrimSuffix(path, longest)
}

// String returns the URL of the server, for messages.
func (a *address) String() string { return secret.URL(a.scheme + "://" + a.host + a.prefix) }

// hostname returns the host without a port.
func (a *address) hostname() string { return (&url.URL{Host: a.host}).Hostname() }

// requestPath returns the path of the requests to an endpoint.
func (a *address) requestPath(endpoint string) string {
	if a.path != "" {
		return a.path
	}
	return a.versioned(apiOf(endpoint).path)
}

// modelsPath returns the path of the list of models.
func (a *address) modelsPath() string { return a.versioned(defaultVersion + "/models") }

func (a *address) versioned(path string) string {
	if rest, ok := strings.CutPrefix(path, defaultVersion+"/"); ok {
		return a.prefix + a.version + "/" + rest
	}
	return a.prefix + path
}

// target returns what a request line has for a path.
func (a *address) target(path string) string {
	if a.query != "" {
		path += "?" + a.query
	}
	return path
}

// shown returns the URL of a path for messages and records: the values of its query
// are masked.
func (a *address) shown(path string) string {
	return secret.URL(a.scheme + "://" + a.host + a.target(path))
}

// addresses parses the URLs of a Config.
func (cfg Config) addresses() ([]*address, error) {
	var all []*address
	for _, text := range cfg.urls() {
		a, err := parseAddress(text)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// checkEndpoint returns an error if the URLs name different endpoints, or another one
// than is set.
func (cfg Config) checkEndpoint(all []*address) error {
	named := namedBy(all)
	for _, a := range all {
		switch {
		case a.endpoint == "":
		case a.endpoint != named:
			return fmt.Errorf("the URLs name two endpoints, %s and %s: use one", named, a.endpoint)
		case cfg.Endpoint != "" && cfg.Endpoint != named:
			return fmt.Errorf("the URL names the %s endpoint (%s), but the endpoint is set to %s: change one of them", named, a.path, cfg.Endpoint)
		}
	}
	return nil
}

// namedBy returns the endpoint that the first URL that has one names, or "".
func namedBy(all []*address) string {
	for _, a := range all {
		if a.endpoint != "" {
			return a.endpoint
		}
	}
	return ""
}

// goodQuery reports whether a query can be sent.
func goodQuery(query string) bool {
	unusual := strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' || c >= 0x7f })
	_, err := url.ParseQuery(query)
	return err == nil && !unusual
}

// queryValues returns the values of a query, as they are written and decoded. They
// may be keys.
func queryValues(query string) (values []string) {
	for _, pair := range strings.Split(query, "&") {
		_, value, ok := strings.Cut(pair, "=")
		if !ok {
			value = pair
		}
		values = append(values, value)
		if decoded, err := url.QueryUnescape(value); err == nil && decoded != value {
			values = append(values, decoded)
		}
	}
	return values
}
