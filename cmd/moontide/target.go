package main

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/net/http/httpproxy"

	"moontide/replay/openai"
	"moontide/replay/secret"
	"moontide/replay/settings"
)

// resolve sets what the settings of the endpoint name: the key in the environment, the proxy,
// and the certificates.
func resolve(c *cli.Context, s *settings.Settings) (err error) {
	if s.APIKeyEnv != "" {
		if s.Client.APIKey = os.Getenv(s.APIKeyEnv); s.Client.APIKey == "" {
			// Do not show the text: it may be an API key.
			return misused("--api-key-env is not the name of an environment variable that is set")
		}
	}
	if s.Client.Proxy, err = proxyOf(c, s.Proxy); err != nil || s.CAFile == "" {
		return err
	}
	s.Client.RootCAs, err = readCAs(s.CAFile)
	return err
}

// proxyOf returns the function of a proxy, or that of the environment.
func proxyOf(c *cli.Context, text string) (func(*url.URL) (*url.URL, error), error) {
	switch {
	case text == "":
		return environmentProxy(os.Getenv), nil
	case text == settings.NoProxy:
		return nil, nil
	case !strings.Contains(text, "://"):
		text = "http://" + text
	}
	proxy, err := url.Parse(text)
	if err != nil || proxy.Hostname() == "" || strings.Trim(proxy.Path, "/") != "" || proxy.RawQuery != "" || proxy.Fragment != "" {
		// Do not show the text: it may have a password.
		return nil, misused("the setting proxy is neither none nor a URL such as http://proxy:3128")
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
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading the CA bundle: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPEM))
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading the CA bundle: %s has no certificate in PEM", path)
	}
	return pool, nil
}

// remedies names the flags that may help if an endpoint refuses all requests.
var remedies = map[openai.Remedy]string{
	openai.UseChat:         "try --endpoint chat",
	openai.UseWords:        "try --prompt words",
	openai.UseSmallerIDs:   "choose token ids of the model's vocabulary with --set token-range=LO:HI",
	openai.UseOtherModel:   "name a model that the endpoint serves with --model",
	openai.NameModel:       "name the model with --model, or check the path of --url",
	openai.UseKey:          "give a valid key with --api-key-env VARIABLE",
	openai.UseOtherURL:     "check the path of --url and --endpoint",
	openai.UseLessExtra:    "leave it out of --extra-body, --temperature and top-p",
	openai.UseShorterText:  "serve the model with a longer context",
	openai.UseOtherAnswers: "use --answers trace, or --endpoint chat, which needs a server that reports output tokens",
	openai.UseOtherSetting: "try --server, --endpoint or --prompt, or give a key with --api-key-env VARIABLE",
}

// remedyOf returns the remedy of an error, for the end of its message.
func remedyOf(err error) string {
	var refused *openai.RefusedError
	if !errors.As(err, &refused) {
		return ""
	}
	return "\nTo fix it, " + remedies[refused.Remedy] + "."
}

// maskedCommand returns the command line without secret values. API keys come from
// the environment.
func maskedCommand() []string {
	masked := append([]string{appName}, os.Args[1:]...)
	for i := 1; i < len(masked); i++ {
		flag, value, joined := strings.Cut(masked[i], "=")
		switch mask, listed := maskOf(strings.TrimLeft(flag, "-")); {
		case !strings.HasPrefix(flag, "-"):
			masked[i] = secret.Message(masked[i])
		case joined:
			masked[i] = flag + "=" + mask(value)
		case listed && i+1 < len(masked):
			i++
			masked[i] = mask(masked[i])
		}
	}
	return masked
}

// maskOf returns the replacement of a flag's values, or of those of another tool's flag for
// the same, and whether the flag may have secret ones.
func maskOf(name string) (mask func(string) string, listed bool) {
	switch name {
	case "upstream":
		return secret.URL, true
	case setFlag:
		return maskedSetting, true
	}
	for i := range settings.Table {
		if row := &settings.Table[i]; row.Mask != nil && (row.Name == name || slices.Contains(row.Others, name)) {
			return row.Mask, true
		}
	}
	return secret.Message, false
}

// maskedSetting masks the value of NAME=VALUE.
func maskedSetting(text string) string {
	name, value, ok := strings.Cut(text, "=")
	if row := settings.Find(name); ok && row != nil && row.Mask != nil {
		return name + "=" + row.Mask(value)
	}
	return secret.Message(text)
}
