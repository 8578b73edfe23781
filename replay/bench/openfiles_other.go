//go:build !unix

package bench

// openFilesLimit is 0: no limit is known.
func openFilesLimit() int { return 0 }
