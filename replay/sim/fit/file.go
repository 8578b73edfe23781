package fit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"moontide/replay/sim/engine"
)

// File is an engine file: a JSON object with a deployment of simulated engines and, if its
// costs were fitted, what is known about the fit.
//
//	{
//	  "format": "moontide engine",
//	  "version": 1,
//	  "deployment": {"engines": 2, "routing": "prefix", "request-latency": "17ms"},
//	  "engine": {"max-num-seqs": 256, "step-base": "4.2ms", "decode-per-context-token": "46.7ns"},
//	  "fit": {...}
//	}
//
// Its settings are the [engine.Parameters], by name, and routing. Times have a unit.
// "decode-engine" has the settings of decode engines if they differ from prefill engines. A
// setting that is missing is 0: no limit, or no cost. A file without a [Fitted] may be
// written by hand. Unknown keys are refused. The same fit gives the same bytes.
type File struct {
	Name   string  // base name of the file that was read
	SHA256 string  // of its bytes
	Fit    *Fitted // nil if the costs were not fitted

	deployment engine.Deployment
}

// NewFile returns a file with a deployment that was not fitted.
func NewFile(d engine.Deployment) *File { return &File{deployment: d.Clone()} }

// Deployment returns the deployment.
func (f *File) Deployment() engine.Deployment { return f.deployment.Clone() }

const (
	fileFormat  = "moontide engine"
	fileVersion = 1
	maxFileSize = 4 << 20

	fitAgain = "if another version wrote the file, fit its measurements again"
)

// content is the JSON of a file.
type content struct {
	Format       string   `json:"format"`
	Version      int      `json:"version"`
	Deployment   settings `json:"deployment"`
	Engine       settings `json:"engine"`
	DecodeEngine settings `json:"decode-engine,omitempty"`
	Fit          *Fitted  `json:"fit,omitempty"`
}

// ReadFile reads the file at path, which may come from an untrusted source. Errors name
// the path and the key.
func ReadFile(path string) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading engine file: %w", err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading engine file: %w", err)
	}
	f, err := ParseFile(text)
	if err != nil {
		return nil, fmt.Errorf("engine file %s: %w", path, err)
	}
	f.Name = filepath.Base(path)
	return f, nil
}

// ParseFile parses the content of a file.
func ParseFile(text []byte) (*File, error) {
	if len(text) > maxFileSize {
		return nil, fmt.Errorf("more than %d bytes", maxFileSize)
	}
	var c content
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	in.UseNumber()
	if err := in.Decode(&c); err != nil {
		if key, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			return nil, fmt.Errorf("unknown key %s: %s", key, fitAgain)
		}
		return nil, fmt.Errorf("JSON at byte %d: %w", in.InputOffset(), err)
	}
	if _, err := in.Token(); err != io.EOF {
		return nil, errors.New("text after the JSON object")
	}
	switch {
	case c.Format != fileFormat:
		return nil, fmt.Errorf("format: %.40q is not %q: this is no engine file", c.Format, fileFormat)
	case c.Version != fileVersion:
		return nil, fmt.Errorf("version: %d is not known, only %d: %s", c.Version, fileVersion, fitAgain)
	}
	digest := sha256.Sum256(text)
	f := &File{Fit: c.Fit, SHA256: hex.EncodeToString(digest[:])}
	var err error
	if f.deployment, err = c.deployment(); err != nil {
		return nil, err
	}
	if err := f.deployment.Validate(); err != nil {
		return nil, err
	}
	if c.Fit != nil {
		if err := c.Fit.check(); err != nil {
			return nil, fmt.Errorf("fit: %w", err)
		}
	}
	return f, nil
}

// WriteTo writes the file.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	d := f.Deployment()
	c := content{Format: fileFormat, Version: fileVersion, Deployment: settingsOf(&d, false), Engine: settingsOf(&d, true), Fit: f.Fit}
	if d.DecodeEngine != nil {
		c.DecodeEngine = settingsOf(&engine.Deployment{Engine: *d.DecodeEngine}, true)
	}
	b := &bytes.Buffer{}
	out := json.NewEncoder(b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(c); err != nil {
		return 0, fmt.Errorf("writing engine file: %w", err)
	}
	n, err := b.WriteTo(w)
	if err != nil {
		err = fmt.Errorf("writing engine file: %w", err)
	}
	return n, err
}
