//go:build !unix && !windows

package atomicfile

import "os"

// Lock does nothing: this system has no lock that is released when a process is
// killed.
func Lock(*os.File) bool { return true }

// guarded has no flags: this system has no such links and pipes.
const guarded = 0

// openDescriptor returns nil: this system has no paths of open files.
func openDescriptor(string) (*os.File, error) { return nil, nil }
