package record

import (
	"errors"
	"fmt"

	"moontide/trace"
)

// Config is how prompts are read and hashed. Key must be set.
type Config struct {
	Key Key
	// BlockSize is the number of tokens of a block; 0 is trace.DefaultBlockSize.
	BlockSize int
	// Encoder turns texts into tokens. Without one, lengths that the server does not
	// tell and block ids of texts are estimated, and marked so. EncoderID is different
	// for each vocabulary, so that traces made with different ones share no ids.
	Encoder   Encoder
	EncoderID string
	// BytesPerToken is the assumed size of a token without an encoder; 0 is 4.
	// ModelBytes has that of models which differ.
	BytesPerToken float64
	ModelBytes    map[string]float64
	// SessionField names the member of the body, such as metadata.chat_id, that has the
	// name of a request's session. Without a name, a session is found by its prompts:
	// each continues the one before.
	SessionField string
}

// Encoder appends the tokens of a text: see tokenizer.Tokenizer. It is used concurrently.
type Encoder interface {
	Append(dst []uint32, text string) ([]uint32, error)
}

const maxBlockSize = 1 << 20

// Check returns an error if the configuration is not valid.
func (c Config) Check() error {
	switch {
	case c.Key == Key{}:
		return errors.New("key is missing")
	case c.BlockSize < 0 || c.BlockSize > maxBlockSize:
		return fmt.Errorf("block size %d is outside of 1 to %d", c.BlockSize, maxBlockSize)
	case !(c.BytesPerToken == 0 || c.BytesPerToken >= 0.1 && c.BytesPerToken <= 100):
		return fmt.Errorf("%v bytes per token is outside of 0.1 to 100", c.BytesPerToken)
	}
	return nil
}

// BytesOf returns the assumed size of a token of a model.
func (c Config) BytesOf(model string) float64 {
	if bytes, ok := c.ModelBytes[model]; ok {
		return bytes
	}
	return c.BytesPerToken
}

// WithDefaults returns c with all zero values replaced.
func (c Config) WithDefaults() Config {
	if c.BlockSize == 0 {
		c.BlockSize = trace.DefaultBlockSize
	}
	if c.BytesPerToken == 0 {
		c.BytesPerToken = 4
	}
	return c
}
