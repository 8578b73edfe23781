package cluster

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"moontide/replay/runfile"
)

// TokenSuffix is added to the folder of a run for the name of the file in which part 1
// tells the others where it listens and the token of the job. Only the user may read
// the file. It exists while the run does.
const TokenSuffix = ".token"

// TokenVariable is the environment variable with the token, if the parts share no
// folder.
const TokenVariable = "MOONTIDE_TOKEN"

// meeting is the content of the token file.
type meeting struct {
	Addresses []string `json:"addresses"` // HOST:PORT, the likeliest first
	Token     string   `json:"token"`
}

// newID returns a random name.
func newID() string { return rand.Text() }

func tokenFile(dir string) string { return filepath.Clean(dir) + TokenSuffix }

// lockMeeting makes the token file, still empty, which only one process can do at a
// time: the file of one that was killed is replaced.
func lockMeeting(dir string) (*os.File, error) {
	path := tokenFile(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the token file: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making the token file: %w", err)
	}
	if !runfile.Lock(f) {
		f.Close()
		return nil, fmt.Errorf("there is another part 1 of this run: it has locked %s", path)
	}
	if err := errors.Join(f.Chmod(0o600), f.Truncate(0)); err != nil {
		f.Close()
		return nil, fmt.Errorf("making the token file: %w", err)
	}
	return f, nil
}

// write writes the token file. Readers ignore one that is not complete.
func (m meeting) write(f *os.File) error {
	text, err := json.Marshal(m)
	if err == nil {
		_, err = f.WriteAt(append(text, '\n'), 0)
	}
	if err != nil {
		return fmt.Errorf("writing the token file: %w", err)
	}
	return nil
}

// readMeeting reads the token file.
func readMeeting(dir string) (m meeting, err error) {
	text, err := os.ReadFile(tokenFile(dir))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s is not complete", tokenFile(dir))
	}
	return m, nil
}
