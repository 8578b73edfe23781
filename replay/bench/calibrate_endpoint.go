package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// Endpoint is a running simulated endpoint.
type Endpoint struct {
	URL string
	PID int // of the endpoint's process
	// Close stops the endpoint and waits for it to exit.
	Close func() error
}

// announcement is the first line that an endpoint prints to standard output.
type announcement struct {
	URL string `json:"url"`
}

// AnnounceEndpoint reports to [StartEndpoint] in the parent process that the
// endpoint accepts connections.
func AnnounceEndpoint(w io.Writer, url string) error {
	return json.NewEncoder(w).Encode(announcement{url})
}

// StartEndpoint runs a command that serves an endpoint. The command must call
// [AnnounceEndpoint] with its standard output and exit when its standard input
// is closed, which happens however this process ends. If it does not start, its
// standard error is included in the error.
func StartEndpoint(cmd *exec.Cmd) (Endpoint, error) {
	fail := func(err error) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("starting an endpoint: %w", err)
	}
	complaint := &firstBytes{}
	cmd.Stderr = complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return fail(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	var announced announcement
	reader := bufio.NewReader(out)
	line, err := reader.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &announced)
	}
	if err == nil && announced.URL == "" {
		err = errors.New("it announces no URL")
	}
	if err != nil {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
		return fail(fmt.Errorf("%w; it says %q", err, complaint.text))
	}
	end := func() error {
		in.Close()
		io.Copy(io.Discard, reader)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("the endpoint ended: %w", err)
		}
		return nil
	}
	return Endpoint{URL: announced.URL, PID: cmd.Process.Pid, Close: end}, nil
}

// firstBytes keeps the first bytes written to it.
type firstBytes struct{ text []byte }

func (f *firstBytes) Write(b []byte) (int, error) {
	f.text = append(f.text, b[:min(len(b), 500-len(f.text))]...)
	return len(b), nil
}
