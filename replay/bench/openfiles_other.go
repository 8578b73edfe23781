//go:build !unix

package bench

// openFilesLimit returns 0: the limit is unknown.
func openFilesLimit() int { return 0 }
