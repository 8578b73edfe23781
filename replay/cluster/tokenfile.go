package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"moontide/trace/atomicfile"
)

// TokenVariable is the environment variable with the token, if the parts share no
// folder.
const TokenVariable = "MOONTIDE_TOKEN"

// meeting is where the parts meet, and the content of the token file beside the folder of
// the run. Only the user may read that file, and it exists during the run.
type meeting struct {
	Address string `json:"address"` // HOST:PORT of part 1
	Token   string `json:"token"`
}

func tokenFile(dir string) string { return filepath.Clean(dir) + ".token" }

// write writes and locks the token file, which only one process can do at a time. It
// replaces the file of a part 1 that was killed.
func (m meeting) write(dir string) (f *os.File, err error) {
	path := tokenFile(dir)
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		f, err = atomicfile.Open(path, os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("making the token file: %w", err)
	}
	locked := atomicfile.Lock(f)
	_, foreign := parseTokenFile(f)
	text, _ := json.Marshal(m) // two strings
	switch {
	case !locked:
		err = fmt.Errorf("there is another part 1 of this run: it has locked %s", path)
	case foreign != nil && foreign != io.EOF: // EOF: it is new, or of one killed early
		err = fmt.Errorf("making the token file: %s exists and is something else: choose another folder for the run", path)
	default:
		_, err = f.WriteAt(append(text, '\n'), 0)
		if err = errors.Join(err, f.Chmod(0o600), f.Truncate(int64(len(text)+1))); err == nil {
			return f, nil
		}
		err = fmt.Errorf("writing the token file: %w", errors.Join(err, atomicfile.Remove(f)))
	}
	f.Close()
	return nil, err
}

func readTokenFile(dir string) (m meeting, err error) {
	f, err := atomicfile.Open(tokenFile(dir), os.O_RDONLY, 0)
	if err != nil {
		return m, err
	}
	defer f.Close()
	if m, err = parseTokenFile(f); err != nil || m.Token == "" {
		return m, fmt.Errorf("%s is not complete", tokenFile(dir))
	}
	return m, nil
}

// parseTokenFile parses exactly what write writes. The error is io.EOF for an empty file.
func parseTokenFile(f *os.File) (m meeting, err error) {
	text, err := io.ReadAll(io.LimitReader(f, maxMessage))
	switch {
	case err != nil:
		return m, err
	case len(text) == 0:
		return m, io.EOF
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if own, err := json.Marshal(m); err != nil || string(own)+"\n" != string(text) {
		return m, errors.New("another program wrote it")
	}
	return m, nil
}
