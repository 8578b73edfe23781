//go:build !unix

package server

// Elsewhere a goroutine a stream waits for each write.
const canTryWrite = false

func tryWrite(int, []byte) (int, error) { return 0, nil }

func passes(error) bool { return false }
