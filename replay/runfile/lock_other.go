//go:build !unix && !windows

package runfile

import "os"

// Lock does nothing: this system has no lock that is released when a process is
// killed.
func Lock(*os.File) bool { return true }
